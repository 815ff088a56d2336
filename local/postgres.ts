import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chown, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { preparePostgresInstall, type PostgresInstall, type PostgresOptions } from "./postgres-install.ts";
import { type LocalServer, ServerNotStarted, startServer } from "./local-server.ts";

const initTimeoutMs = 120_000;
const passwordBytes = 18;
const databaseName = "serpmill";

// The whole environment: neither the locale and time zone nor PGPORT or LD_LIBRARY_PATH of the user may change the server.
const environment = { LC_ALL: "C", TZ: "UTC" };

/**
 * Starts a private Postgres on 127.0.0.1, with a database "serpmill" (UTF8, locale C) and a password that only the owner of
 * the folder can read. The first start on a folder initialises it; later starts find the data again.
 * @throws {ServerNotStarted} with the last lines of the server's log.
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<LocalServer> {
  const durable = options.durable ?? false;
  const install = await preparePostgresInstall(options);
  const throwawayFolder = options.folder === undefined ? install.folder : undefined;
  try {
    const data = join(install.folder, "data");
    if (!existsSync(data)) {
      options.say?.("preparing a database, at the first start only");
      await initialise(install, data, durable);
    }
    const server = await startServer(
      {
        name: "Postgres",
        command: join(install.programs, "bin", "postgres"),
        args: (chosen) => postgresArgs(data, chosen, durable),
        readyLine: "database system is ready to accept", // Connections; a standby says "read-only connections".
        stopSignal: "SIGINT", // Fast shutdown: open transactions are rolled back, nothing acknowledged is lost.
        folder: install.folder,
        pidFile: join(data, "postmaster.pid"),
        workFolder: data,
        throwawayFolder,
        env: environment,
        cwd: "/",
        ...install.runAs,
      },
      options.port,
    );
    const url = await openDatabase(install, server.port).catch(async (error: unknown) => {
      await server.stop();
      throw error;
    });
    return { ...server, url };
  } catch (error) {
    if (throwawayFolder !== undefined) await rm(throwawayFolder, { recursive: true, force: true });
    throw explainVersion(error, install.folder);
  }
}

const otherVersion = /initialized by PostgreSQL version (\S+), which is not compatible with this version (\d+)/;

/** Data of another major version of Postgres, in one sentence with what to do. */
function explainVersion(error: unknown, folder: string): unknown {
  const [, theirs, ours] = (error instanceof ServerNotStarted && otherVersion.exec(error.message)) || [];
  if (theirs === undefined) return error;
  return new ServerNotStarted(
    `The database in ${folder} is of Postgres ${theirs}, and this release has Postgres ${ours}: start the release that made it, or delete the folder to begin with an empty one.`,
    { cause: error },
  );
}

/**
 * The address at which the processes log in to a server of {@link startPostgres}: as a role of their own, which the migration
 * creates. Its password follows from the owner's, so that later starts know it; the owner's does not follow from it.
 */
export function processUrlOf(ownerUrl: string): string {
  const url = new URL(ownerUrl);
  url.username = "serpmill_app";
  url.password = createHash("sha256").update(`${url.username} ${url.password}`).digest("base64url");
  return url.href;
}

// The folder has another name until it is complete, so that an interrupted start leaves nothing that looks like data.
async function initialise(install: PostgresInstall, data: string, durable: boolean): Promise<void> {
  const unfinished = `${data}.unfinished`;
  const passwordFile = join(install.folder, "password");
  await rm(unfinished, { recursive: true, force: true });
  await writeFile(passwordFile, randomBytes(passwordBytes).toString("base64url"), { mode: 0o600 });
  const { uid, gid } = install.runAs;
  if (uid !== undefined && gid !== undefined) await chown(passwordFile, uid, gid);
  const args = ["--username=postgres", `--pwfile=${passwordFile}`, "--auth=scram-sha-256", "--encoding=UTF8"];
  args.push("--locale=C", "--no-instructions", ...(durable ? [] : ["--no-sync"]), `--pgdata=${unfinished}`);
  const started = { env: environment, cwd: "/", timeout: initTimeoutMs, ...install.runAs };
  await promisify(execFile)(join(install.programs, "bin", "initdb"), args, started).catch((error: Error) => {
    throw new ServerNotStarted(`Postgres could not be initialised in ${data}. ${error.message}`, { cause: error });
  });
  await rename(unfinished, data);
}

function postgresArgs(data: string, port: number, durable: boolean): string[] {
  const settings = [`port=${port}`, "listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"];
  // Commits stay synchronous: without fsync they cost nothing, and a killed server keeps every acknowledged commit. The memory that
  // processes share is a file in the data folder, so that a killed server leaves none elsewhere.
  if (!durable) settings.push("fsync=off", "full_page_writes=off", "dynamic_shared_memory_type=mmap");
  return ["-D", data, ...settings.flatMap((setting) => ["-c", setting])];
}

async function openDatabase({ folder }: PostgresInstall, port: number): Promise<string> {
  const password = await readFile(join(folder, "password"), "utf8");
  const urlOf = (database: string) => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
  const client = new Client({ connectionString: urlOf("postgres") });
  client.on("error", () => undefined); // What waits for the client gets the error of a lost connection too.
  await client.connect();
  try {
    const { rowCount } = await client.query("select from pg_database where datname = $1", [databaseName]);
    if (rowCount === 0) await client.query(`create database ${databaseName}`);
  } finally {
    await client.end();
  }
  return urlOf(databaseName);
}
