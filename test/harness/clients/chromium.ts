import { existsSync } from "node:fs";

/** Where a Chromium is that tests may start; a test that needs it is skipped without, and says so. Nothing is installed. */
export const chromiumPath = process.env["CHROMIUM_PATH"] ?? "/usr/bin/chromium";

/** For the title of what is skipped; empty where it is not. */
export const withoutChromium = existsSync(chromiumPath) ? "" : ` (skipped: there is no ${chromiumPath})`;
