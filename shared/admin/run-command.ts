import { pino } from "pino";
import { readConfig } from "../config.ts";
import { type Context, openContext } from "../context.ts";
import { describeError } from "../log.ts";

/** Runs one command with Postgres and Redis open, prints what it returns as one line of JSON, and closes both. */
export async function runCommand(command: (context: Context) => Promise<object>): Promise<void> {
  // Only errors are logged, and on stderr, so that stdout stays one line of JSON.
  const log = pino({ level: "error", serializers: { err: describeError } }, pino.destination(2));
  const context = openContext({ config: readConfig(), name: "admin", databaseSizeMax: 1, log });
  try {
    process.stdout.write(`${JSON.stringify(await command(context))}\n`);
  } finally {
    await context.shutdown.run(log);
  }
}
