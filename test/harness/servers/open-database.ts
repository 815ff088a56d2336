import { processUrlOf } from "../../../local/postgres.ts";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { type Database, openDatabase } from "../../../shared/database/pool.ts";
import { openLog } from "../../../shared/log.ts";
import { freshDatabase } from "./servers.ts";

const log = openLog({ name: "test", level: "silent" });

/** A new migrated database and a pool to it, for tests that start no process. `end` gets what closes both, as `afterAll` does. */
export async function openFreshDatabase(
  end: (close: () => Promise<void>) => void,
  { sizeMax = 10, timeZone = "UTC" } = {},
): Promise<{ database: Database; url: string }> {
  const shutdown = new Shutdown();
  const { url, drop } = await freshDatabase();
  const database = openPatiently({ url: inTimeZone(processUrlOf(url), timeZone), sizeMax, log, shutdown });
  end(async () => {
    await shutdown.run(log);
    await drop();
  });
  return { database, url };
}

/** A pool whose queries wait for a connection: tests ask more at once than a process does, also on a busy machine. */
export function openPatiently(options: Omit<Parameters<typeof openDatabase>[0], "name">): Database {
  return openDatabase({ ...options, name: "test", connectTimeoutMs: 60_000 });
}

/** The URL of the same database for sessions in this time zone. */
export function inTimeZone(databaseUrl: string, timeZone: string): string {
  const url = new URL(databaseUrl);
  url.search = `?options=-c%20timezone%3D${timeZone}`;
  return url.href;
}
