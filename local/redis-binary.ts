/** Finds a Redis to run: on the PATH, in an earlier download, or in the archive of this Debian or Ubuntu, downloaded now. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const versionMin = 7;
const versionTimeoutMs = 10_000;
const downloadTimeoutMs = 180_000;
const outputBytesMax = 16 * 1024 * 1024;
const binaryNames = ["redis-server", "valkey-server"];
const downloadFolder = join(import.meta.dirname, "..", ".serpmill", "redis-program");

const run = promisify(execFile);

interface RedisBinary {
  command: string;
  /** The environment to run it in; by default that of this process. */
  env?: NodeJS.ProcessEnv;
}

/** There is no Redis, and none could be downloaded. The message says what to install. */
export class RedisBinaryNotFound extends Error {}

/** @throws {RedisBinaryNotFound} */
export async function findRedisBinary(
  folder = downloadFolder,
  say: (line: string) => void = () => {},
): Promise<RedisBinary> {
  for (const command of binaryNames) if (await isRecent({ command })) return { command };
  if (!existsSync(folder)) {
    say(`No Redis ${versionMin} or newer on the PATH: downloading one into ${folder}`);
    await download(folder).catch((error: Error) => {
      const reason = error.message.trim().split("\n").at(-1);
      throw new RedisBinaryNotFound(`${installHint}\n(The download failed: ${reason})`, { cause: error });
    });
  }
  const downloaded = await binaryIn(folder);
  if (await isRecent(downloaded)) return downloaded;
  throw new RedisBinaryNotFound(`${installHint}\n(The downloaded one in ${folder} is older or does not run.)`);
}

const installHint =
  `Redis ${versionMin} or newer is needed and was not found. Install redis-server or valkey-server, for example with ` +
  '"apt-get install redis-server", "dnf install valkey" or "brew install valkey", or set REDIS_URL.';

async function isRecent({ command, env }: RedisBinary): Promise<boolean> {
  try {
    // "Redis server v=7.0.15 sha=...", "Valkey server v=8.0.1 ..."
    const { stdout } = await run(command, ["--version"], { timeout: versionTimeoutMs, ...(env && { env }) });
    return Number(/ v=(\d+)\./.exec(stdout)?.[1]) >= versionMin;
  } catch {
    return false;
  }
}

// Tries the machine's package lists first. They may be outdated or absent, as in container images, and only root may update
// them, so the second try uses its own lists.
async function download(folder: string): Promise<void> {
  await mkdir(dirname(folder), { recursive: true });
  const unfinished = await mkdtemp(`${folder}-unfinished-`);
  try {
    await fetchPackages(unfinished, []).catch(async () => {
      const lists = await mkdtemp(`${folder}-unfinished-`);
      try {
        await mkdir(join(lists, "partial"));
        const ownLists = ["-o", `Dir::State::lists=${lists}`, "-o", `Dir::Cache=${lists}`];
        await aptGet(unfinished, [...ownLists, "update"]);
        await fetchPackages(unfinished, ownLists);
      } finally {
        await rm(lists, { recursive: true, force: true });
      }
    });
    await rename(unfinished, folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error; // Otherwise another process has finished the same download.
    });
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

async function fetchPackages(folder: string, aptOptions: string[]): Promise<void> {
  const plan = await aptGet(folder, [
    ...aptOptions,
    "install",
    "--simulate",
    "--no-install-recommends",
    "redis-server",
  ]);
  const missing = [...plan.matchAll(/^Inst ((?:lib|lua-)\S+)/gm)].flatMap(([, name]) => name ?? []);
  // The C library is left out: a second one would not match the machine's loader.
  const libraries = missing.filter((name) => !/^libc6?(-|$)/.test(name));
  await aptGet(folder, [...aptOptions, "download", "redis-server", "redis-tools", ...libraries]);
  for (const file of await readdir(folder)) {
    if (!file.endsWith(".deb")) continue;
    await run("dpkg", ["-x", join(folder, file), folder], { timeout: downloadTimeoutMs });
    await rm(join(folder, file));
  }
}

async function aptGet(folder: string, args: string[]): Promise<string> {
  const started = { cwd: folder, timeout: downloadTimeoutMs, maxBuffer: outputBytesMax };
  // As root, apt downloads as its own user, which may be unable to write to this folder.
  const { stdout } = await run("apt-get", ["-q", "-o", "APT::Sandbox::User=root", ...args], started);
  return stdout;
}

async function binaryIn(folder: string): Promise<RedisBinary> {
  const libraryFolders: string[] = [];
  for (const parent of [join(folder, "usr", "lib"), join(folder, "lib")]) {
    const names = existsSync(parent) ? await readdir(parent) : [];
    libraryFolders.push(...names.map((name) => join(parent, name)));
  }
  return {
    command: join(folder, "usr", "bin", "redis-server"),
    env: { LC_ALL: "C", LD_LIBRARY_PATH: libraryFolders.join(":") },
  };
}
