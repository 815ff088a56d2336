import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startGuardedProcess } from "../../../local/guarded-process.ts";
import { readSource } from "../assertions/sources.ts";
import { GuardedFolder } from "../processes/guarded-folder.ts";

const program = "/usr/sbin/haproxy"; // Where Debian has it.

/** What the titles of tests say where there is none, and they are skipped. */
export const withoutHaproxy = existsSync(program) ? "" : ` (skipped: no ${program})`;

/**
 * Starts HAProxy with a shipped configuration.
 * @param options.config its path in the checkout.
 * @param options.changes what addresses and ports there become, for each of them, wherever they stand.
 * @returns all that it has written so far, and what stops it.
 */
export async function startHaproxy(options: {
  config: string;
  changes: Readonly<Record<string, string>>;
  env?: Record<string, string>;
}): Promise<{ written: () => string; stop: () => Promise<void> }> {
  const folder = await GuardedFolder.create("serpmill-haproxy-");
  const path = join(folder.path, "haproxy.cfg");
  const text = Object.entries(options.changes).reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`${options.config} has no ${from}`);
    return changed.replaceAll(from, to);
  }, readSource(options.config));
  await writeFile(path, text);
  const haproxy = await startGuardedProcess(program, ["-f", path], {
    stdio: ["ignore", "pipe", "pipe"],
    env: options.env ?? {},
  });
  let written = "";
  for (const stream of [haproxy.process.stdout, haproxy.process.stderr])
    stream?.on("data", (chunk: Buffer) => {
      written += chunk.toString();
    });
  return {
    written: () => written,
    stop: async () => {
      await haproxy.stop();
      folder.remove();
    },
  };
}
