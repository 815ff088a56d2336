import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import pg from "pg";
import { z } from "zod";
import { StartRefused } from "../config/start-refused.ts";

/**
 * The most milliseconds that a statement, a wait for a lock, and a pause within a transaction may take, by the names of the
 * settings in Postgres. Sessions set them; behind a transaction pooler the login role has them.
 */
export const usualLimits = {
  statement_timeout: 5_000,
  lock_timeout: 2_000,
  idle_in_transaction_session_timeout: 10_000,
};

/** The role that every connection of the processes switches to. It cannot log in; those who can are its members. */
const processRole = "serpmill";

// The functions that move money wait for a lock, and then read what others have committed meanwhile. With another isolation
// level, a search could be both charged and refunded.
const isolation = "read committed";

// Statements take milliseconds. To compile one, as Postgres may do before it runs it, takes up to seconds.
const jit = "off";

/** With this each session begins, whatever the server's defaults are. Dates in another style could not be read. */
export const sessionStart = `set role ${processRole}; set default_transaction_isolation = '${isolation}'; set jit = ${jit}; set datestyle = iso`;

/**
 * Creates the role as which the processes log in: a member of `serpmill` and nothing more, with the settings of a session. A role
 * that exists keeps its password and its own settings, and is only made a member. Does nothing where the processes log in as the owner.
 * @param ownerUrl must be allowed to create roles, as for the first migration.
 * @returns the role's name if it was created.
 */
export async function createProcessLogin(ownerUrl: string, processUrl: string): Promise<string | undefined> {
  const { username, password } = new URL(processUrl);
  const name = decodeURIComponent(username);
  if (username === new URL(ownerUrl).username || name === "") return undefined;
  const client = new pg.Client({ connectionString: ownerUrl, application_name: "serpmill-migrate" });
  client.on("error", () => undefined); // What waits for the client gets the error of a lost connection too.
  await client.connect();
  try {
    const { rows } = await client.query(
      "select pg_has_role(oid, $2, 'member') as is_member from pg_roles where rolname = $1",
      [name, processRole],
    );
    const role = client.escapeIdentifier(name);
    const verifier = client.escapeLiteral(scramVerifier(decodeURIComponent(password)));
    if (!rows[0]) await client.query(`create role ${role} login password ${verifier}`);
    if (!rows[0]?.is_member) await client.query(`grant ${processRole} to ${role}`);
    await giveSettings(client, name);
    return rows[0] ? undefined : name;
  } finally {
    await client.end();
  }
}

/** Gives the login the settings of a session that it lacks. A login of the operator's may be out of the owner's reach. */
async function giveSettings(client: pg.Client, name: string): Promise<void> {
  const { rows } = await client.query("select coalesce(rolconfig, '{}') as own from pg_roles where rolname = $1", [
    name,
  ]);
  const own = z.array(z.string()).parse(rows[0].own);
  const role = client.escapeIdentifier(name);
  for (const [setting, value] of Object.entries({ ...usualLimits, default_transaction_isolation: isolation, jit })) {
    if (own.some((text) => text.startsWith(`${setting}=`))) continue;
    await client.query(`alter role ${role} set ${setting} = '${value}'`).catch((error: unknown) => {
      if (!(error instanceof pg.DatabaseError && error.code === insufficientPrivilege)) throw error;
    });
  }
}

const insufficientPrivilege = "42501";

/** What Postgres stores of a password (RFC 5803). Sent in its place, so that the password is in no log of the server. */
function scramVerifier(password: string): string {
  const [iterations, salt] = [4_096, randomBytes(16)];
  const salted = pbkdf2Sync(password, salt, iterations, 32, "sha256");
  const hmac = (text: string) => createHmac("sha256", salted).update(text).digest();
  const storedKey = createHash("sha256").update(hmac("Client Key")).digest("base64");
  return `SCRAM-SHA-256$${iterations}:${salt.toString("base64")}$${storedKey}:${hmac("Server Key").toString("base64")}`;
}

/**
 * Whether a process that was taken over could become more than `serpmill` on this connection. `reset role` leads back to the
 * role that logged in, so that one counts, with every role that it is a member of.
 */
export async function canBecomeMore(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query(
    `select exists (
       select from pg_roles r where pg_has_role(session_user, r.oid, 'member') and (
         r.rolsuper or r.rolcreaterole or r.rolbypassrls or r.rolreplication
         or r.oid = (select relowner from pg_class where oid = to_regclass('ledger_entries'))
         or r.rolname in ('pg_write_all_data', 'pg_write_server_files', 'pg_execute_server_program'))
     ) as can_become_more`,
  );
  return rows[0].can_become_more;
}

// Object.keys returns strings.
const limitNames = Object.keys(usualLimits) as (keyof typeof usualLimits)[];
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
 * Checks that the login itself is confined as `serpmill` is and has the settings of a session: behind a pooler that changes the
 * session with each transaction, a process can set none.
 * @throws {StartRefused} with all that is wrong.
 */
export async function checkPooledLogin(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query(
    "select pg_has_role(current_user, $1, 'usage') as may_work, current_setting('default_transaction_isolation') as isolation",
    [processRole],
  );
  const isMore = await canBecomeMore(client);
  const unlimited = (await readLimits(client)).filter(({ name, ms }) => ms === 0 || ms > usualLimits[name]);
  const wrong = [
    ...(isMore ? ["it can do more than the processes need"] : []),
    ...(rows[0].may_work ? [] : [`it does not inherit the rights of ${processRole}`]),
    ...unlimited.map(({ name }) => `its ${name} is not 1 to ${usualLimits[name]} ms`),
    ...(rows[0].isolation === isolation ? [] : [`its default_transaction_isolation is not ${isolation}`]),
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
