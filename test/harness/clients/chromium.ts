import { existsSync } from "node:fs";

/** The Chromium that tests start. Without it the tests that need it are skipped; nothing is installed. */
export const chromiumPath = process.env["CHROMIUM_PATH"] ?? "/usr/bin/chromium";

/** The suffix of a skipped title; empty if Chromium is there. */
export const withoutChromium = existsSync(chromiumPath) ? "" : ` (skipped: there is no ${chromiumPath})`;
