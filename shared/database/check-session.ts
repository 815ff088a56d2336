import type pg from "pg";
import { z } from "zod";
import { StartRefused } from "../config/start-refused.ts";
import { canBecomeMore, processRole, type usualLimits } from "./process-login.ts";

/** The time-outs of a session in milliseconds. */
type SessionLimits = typeof usualLimits;

const limitNames: readonly (keyof SessionLimits)[] = [
  "statement_timeout",
  "lock_timeout",
  "idle_in_transaction_session_timeout",
];
// `client` as the source of a setting: this session asked for it. Those of a login role have the source `user`.
const settingRow = z.object({ name: z.enum(limitNames), ms: z.number(), source: z.string() });
const refusedParameter = /^unsupported startup parameter/;

const moreHelp = "docs/operating/datastores.md#pgbouncer";
const dropped =
  "a pooler in front of Postgres drops the time-outs that this process asks for: with PgBouncer in transaction mode set DATABASE_POOLER=transaction";

/** Checks that the time-outs are those that this session asked for when it began. @throws {StartRefused} if not. */
export async function checkSession(client: pg.ClientBase): Promise<void> {
  const rows = await readLimits(client);
  const isDropped = rows.some(({ source }) => source !== "client");
  if (isDropped) throw new StartRefused(`DATABASE_URL: ${dropped} (${moreHelp}).`);
}

/**
 * Checks that the login itself is confined as `serpmill` is and has the time-outs: behind a pooler that changes the session
 * with each transaction, a process can set neither.
 * @throws {StartRefused} with all that is wrong.
 */
export async function checkPooledLogin(client: pg.ClientBase, limits: SessionLimits): Promise<void> {
  const { rows } = await client.query("select pg_has_role(current_user, $1, 'usage') as may_work", [processRole]);
  const isMore = await canBecomeMore(client);
  const unlimited = (await readLimits(client)).filter(({ name, ms }) => ms === 0 || ms > limits[name]);
  const wrong = [
    ...(isMore ? ["it can do more than the processes need"] : []),
    ...(rows[0].may_work ? [] : [`it does not inherit the rights of ${processRole}`]),
    ...unlimited.map(({ name }) => `its ${name} is not 1 to ${limits[name]} ms`),
  ];
  if (wrong.length === 0) return;
  throw new StartRefused(
    `DATABASE_URL: with DATABASE_POOLER=transaction the role that logs in must be a member of ${processRole} with time-outs of its own, but ${wrong.join(", ")} (${moreHelp}).`,
  );
}

/** PgBouncer's refusal of what a session asks for, as a sentence that says what to do; any other error as it is. */
export function explainRefusal(error: unknown): unknown {
  if (!(error instanceof Error && refusedParameter.test(error.message))) return error;
  return new StartRefused(`DATABASE_URL: ${dropped} (${moreHelp}).`, { cause: error });
}

async function readLimits(client: pg.ClientBase) {
  const { rows } = await client.query(
    "select name, setting::int as ms, source from pg_settings where name = any ($1)",
    [limitNames],
  );
  return z.array(settingRow).length(limitNames.length).parse(rows);
}
