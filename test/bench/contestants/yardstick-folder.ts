import { execFile } from "node:child_process";
import { cpSync, existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import type { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { GuardedFolder } from "../../harness/processes/guarded-folder.ts";

const installTimeoutMs = 300_000;
const files = ["package.json", "api.js", "worker.js", "seed.js"];
// Its programs run with the Node of the benchmark, so no package has to build or download anything.
const install = ["install", "--no-audit", "--no-fund", "--ignore-scripts"];

/** @throws if the folder lacks a program of the yardstick. */
export function checkYardstick(folder: string): void {
  const missing = files.filter((file) => !existsSync(join(folder, file)));
  if (missing.length > 0) throw new Error(`The yardstick's folder lacks ${missing.join(", ")}.`);
}

/** The folder, or a copy of it with its packages if it has none. The copy is removed at the end. */
export async function openYardstickFolder(folder: string, shutdown: Shutdown): Promise<string> {
  if (existsSync(join(folder, "node_modules"))) return resolve(folder);
  const copy = await GuardedFolder.create("serpmill-yardstick-");
  shutdown.register("folder of the yardstick", () => copy.remove());
  cpSync(folder, copy.path, { recursive: true });
  await promisify(execFile)("npm", install, { cwd: copy.path, timeout: installTimeoutMs });
  return copy.path;
}
