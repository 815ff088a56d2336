import { existsSync } from "node:fs";
import { chmod, mkdtemp, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LocalServer, startServer } from "../../../local/local-server.ts";

const program = "/usr/sbin/pgbouncer"; // Where Debian has it.

/** What the titles of tests say where there is none, and they are skipped. */
export const withoutPgbouncer = existsSync(program) ? "" : ` (skipped: no ${program})`;

/**
 * Starts a PgBouncer in transaction mode in front of the database of this address, with few sessions, so that transactions
 * often get another one.
 * @param settings more lines of its configuration.
 */
export async function startPgbouncer(databaseUrl: string, settings: readonly string[] = []): Promise<LocalServer> {
  const { hostname, port: databasePort, pathname, username, password } = new URL(databaseUrl);
  const folder = await realpath(await mkdtemp(join(tmpdir(), "serpmill-pgbouncer-")));
  const pidFile = join(folder, "pgbouncer.pid");
  const configFile = join(folder, "pgbouncer.ini");
  await writeFile(join(folder, "users.txt"), `"${username}" "${decodeURIComponent(password)}"\n`);
  // As root, PgBouncer changes to a user that must be able to read and write here.
  await chmod(folder, 0o777);
  const user = process.getuid?.() === 0 ? ["user = nobody"] : [];
  const server = await startServer({
    name: "PgBouncer",
    command: "/bin/sh",
    // The port is chosen at the start, and PgBouncer reads it from its file.
    args: (chosen) => [
      "-c",
      'printf "%s\\n" "$2" > "$1"; exec "$0" "$1"',
      program,
      configFile,
      [
        "[databases]",
        `${pathname.slice(1)} = host=${hostname} port=${databasePort}`,
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        `listen_port = ${chosen}`,
        "unix_socket_dir =",
        "pool_mode = transaction",
        "default_pool_size = 3",
        "server_login_retry = 1",
        "auth_type = scram-sha-256",
        `auth_file = ${join(folder, "users.txt")}`,
        `pidfile = ${pidFile}`,
        ...user,
        ...settings,
      ].join("\n"),
    ],
    readyLine: "process up",
    stopSignal: "SIGINT",
    folder,
    pidFile,
    workFolder: folder,
    cwd: folder,
    throwawayFolder: folder,
  });
  return { ...server, url: Object.assign(new URL(databaseUrl), { port: server.port }).href };
}
