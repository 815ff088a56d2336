import { execFileSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { GuardedFolder } from "./guarded-folder.ts";

/**
 * The release that operators run while they upgrade to this checkout. Put the commit of a release here once it is out. There
 * is none yet: this is the commit before migration 008.
 */
const commit = "3ec0a93e8276a55a706e4ce1d9fca531f093da6d";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const parts = ["api", "worker", "shared", "package.json"];
const archiveBytesMax = 100_000_000;

const git = (...args: string[]) =>
  execFileSync("git", ["-C", root, ...args], { maxBuffer: archiveBytesMax, stdio: ["ignore", "pipe", "ignore"] });

/** Whether the checkout has that commit: a shallow clone or an archive has not. */
export function hasLastRelease(): boolean {
  try {
    git("cat-file", "-e", `${commit}^{commit}`);
    return true;
  } catch {
    return false;
  }
}

/** What the last release needs and this one does not. Remove it together with the commit. */
const ownPackage = "swagger-ui-dist";

/** Unpacks the last release. It runs with the packages of this checkout. */
export async function unpackLastRelease(): Promise<GuardedFolder> {
  import.meta.resolve(`${ownPackage}/package.json`); // Throws without it, instead of every process of the release.
  const folder = await GuardedFolder.create("serpmill-last-release-");
  execFileSync("tar", ["--extract", "--directory", folder.path], { input: git("archive", commit, ...parts) });
  symlinkSync(join(root, "node_modules"), join(folder.path, "node_modules"));
  return folder;
}
