import { execFile } from "node:child_process";
import { appendFile, chown, copyFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { LocalServer } from "../../../local/local-server.ts";
import { preparePostgresInstall } from "../../../local/postgres-install.ts";
import { startPostgres } from "../../../local/postgres.ts";
import { GuardedFolder } from "../processes/guarded-folder.ts";
import { eventually } from "../assertions/eventually.ts";
import { asOwner } from "./as-owner.ts";
import { debianPostgres } from "./debian-postgres.ts";
import { startProxy } from "./proxy.ts";
import { signalPostgres } from "./signal-postgres.ts";

const standbyName = "standby_1";
const copyTimeoutMs = 60_000;

/** What the titles of tests say where there is none, and they are skipped. */
export const withoutPostgresPair = debianPostgres() === undefined ? " (skipped: no Debian package postgresql)" : "";

/** A Postgres and its standby, of the version that Debian has. */
export type PostgresPair = Awaited<ReturnType<typeof startPostgresPair>>;

/** Starts both, and waits until the standby has what the primary has. */
export async function startPostgresPair({ isSynchronous }: { isSynchronous: boolean }) {
  const programs = debianPostgres() ?? "";
  const guarded = await GuardedFolder.create("serpmill-pair-");
  const primary = await startPostgres({ programs, folder: join(guarded.path, "primary") });
  const replication = await startProxy(primary.url);
  const standby = await startStandby({
    primary,
    programs,
    folder: join(guarded.path, "standby"),
    from: replication.url,
  });
  if (isSynchronous) {
    const file = join(primary.folder, "data", "postgresql.conf");
    await appendFile(file, `synchronous_standby_names = '${standbyName}'\n`);
    await asOwner(primary.url, "select pg_reload_conf()");
  }
  /** Whether the standby has what the primary has, and is in this state. */
  const isReplicating = (state: "sync" | "async"): Promise<boolean> =>
    asOwner(primary.url, async (client) => {
      const { rows } = await client.query(
        "select sync_state, replay_lsn = pg_current_wal_lsn() as is_equal from pg_stat_replication where application_name = $1",
        [standbyName],
      );
      return rows[0]?.sync_state === state && rows[0]?.is_equal === true;
    });
  await eventually(() => isReplicating(isSynchronous ? "sync" : "async"));
  return {
    primary,
    standby,
    /** Between the standby and the primary. */
    replication,
    isReplicating,
    /** Kills the primary with all its connections, as `kill -9` of each process. */
    killPrimary: () => signalPostgres(primary.pid, "SIGKILL"),
    /** The primary answers nothing any more and closes nothing, as a host that lost its network. */
    freezePrimary: () => signalPostgres(primary.pid, "SIGSTOP"),
    /** Promotes the standby by hand. @returns when it answered as a primary, by `performance.now()`. */
    promote: () =>
      asOwner(standby.url, async (client) => {
        await client.query("select pg_promote(false)");
        await eventually(async () => (await client.query("select pg_is_in_recovery() as is")).rows[0]?.is === false);
        return performance.now();
      }),
    close: async () => {
      signalPostgres(primary.pid, "SIGKILL");
      await replication.close();
      await Promise.all([primary.stop(), standby.stop()]);
      // The data may be in other folders, which Postgres' user can access.
      for (const { folder } of [primary, standby]) await rm(folder, { recursive: true, force: true });
      guarded.remove();
    },
  };
}

/** Copies a primary, and starts the copy as its standby. @param options.from the address at which it follows the primary. */
async function startStandby(options: {
  primary: LocalServer;
  programs: string;
  folder: string;
  from: string;
}): Promise<LocalServer> {
  const { primary, programs, folder } = options;
  const install = await preparePostgresInstall({ programs, folder });
  const source = new URL(options.from);
  source.searchParams.set("application_name", standbyName);
  const args = [`--dbname=${source.href}`, `--pgdata=${join(install.folder, "data")}`, "--write-recovery-conf"];
  const started = { cwd: "/", timeout: copyTimeoutMs, ...install.runAs };
  await promisify(execFile)(
    join(programs, "bin", "pg_basebackup"),
    [...args, "--checkpoint=fast", "--no-sync"],
    started,
  );
  // With its data the standby has the passwords of the primary.
  const password = join(install.folder, "password");
  await copyFile(join(primary.folder, "password"), password);
  const { uid, gid } = install.runAs;
  if (uid !== undefined && gid !== undefined) await chown(password, uid, gid);
  return startPostgres({ programs, folder });
}
