import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { buildTypescript } from "../../../clients/build-typescript.ts";
import { GuardedFolder } from "../processes/guarded-folder.ts";

const run = promisify(execFile);
const npmMsMax = 120_000;

/** The npm package, packed and installed as a caller gets it. */
export interface PackedTypescript {
  /** A folder whose programs can import `serpmill`. */
  folder: string;
  /** The paths of the packed files. */
  files: string[];
  remove: () => void;
}

/** Builds, packs and installs the package, without a registry. */
export async function packTypescript(): Promise<PackedTypescript> {
  const guarded = await GuardedFolder.create("serpmill-npm-");
  const [built, folder] = [join(guarded.path, "built"), join(guarded.path, "caller")];
  await Promise.all([built, folder].map((path) => mkdir(path)));
  await buildTypescript(built);
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", guarded.path], { cwd: built });
  // This is npm's own report: one entry for the package, by its name or in a list.
  const report = JSON.parse(stdout) as Record<string, { filename: string; files: { path: string }[] }>;
  const [packed] = Object.values(report);
  if (!packed) throw new Error(`npm packed nothing: ${stdout}`);
  await writeFile(join(folder, "package.json"), '{ "type": "module", "private": true }\n');
  const install = ["install", "--offline", "--no-audit", "--no-fund", join(guarded.path, packed.filename)];
  await run("npm", install, { cwd: folder, timeout: npmMsMax });
  return { folder, files: packed.files.map(({ path }) => path), remove: () => guarded.remove() };
}
