/** Finds a Redis to run: on the PATH, downloaded earlier, or now, from the machine's own Debian or Ubuntu archive. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const versionMin = 7;
const versionTimeoutMs = 10_000;
const downloadTimeoutMs = 180_000;
const outputBytesMax = 16 * 1024 * 1024;
const programNames = ["redis-server", "valkey-server"];
const downloadFolder = join(import.meta.dirname, "..", "..", ".serpmill", "redis-program");

const run = promisify(execFile);

export interface RedisBinary {
  command: string;
  /** The environment to run it in. Without one it runs in ours. */
  env?: NodeJS.ProcessEnv;
}

/** There is no Redis, and none could be downloaded. The message says what to install. */
export class RedisBinaryNotFound extends Error {}

/** @throws {RedisBinaryNotFound} */
export async function findRedisBinary(
  folder = downloadFolder,
  say: (line: string) => void = () => {},
): Promise<RedisBinary> {
  for (const command of programNames) if (await isRecent({ command })) return { command };
  if (!existsSync(folder)) {
    say(`No Redis ${versionMin} or newer on the PATH: downloading one into ${folder}`);
    await download(folder).catch((error: Error) => {
      const reason = error.message.trim().split("\n").at(-1);
      throw new RedisBinaryNotFound(`${whatToInstall}\n(Downloading it was tried: ${reason})`, { cause: error });
    });
  }
  const downloaded = await programIn(folder);
  if (await isRecent(downloaded)) return downloaded;
  throw new RedisBinaryNotFound(
    `${whatToInstall}\n(What the system's archive has, in ${folder}, is older or does not run.)`,
  );
}

const whatToInstall =
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

// First with the machine's own package lists; if that fails, they may be old or absent (as in container images) and
// only root may renew them, so with lists of our own.
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
      if (!existsSync(folder)) throw error; // Else another process has downloaded the same in the meantime.
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
  // The machine's own C library stays: another beside it would not fit the loader.
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
  // As root apt hands downloads to a user of its own, who may be unable to write here.
  const { stdout } = await run("apt-get", ["-q", "-o", "APT::Sandbox::User=root", ...args], started);
  return stdout;
}

async function programIn(folder: string): Promise<RedisBinary> {
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
