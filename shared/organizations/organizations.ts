import type { Redis } from "ioredis";
import { z } from "zod";
import { type Plan, planColumns, readPlan } from "../credits/plans.ts";
import type { Database } from "../database/pool.ts";
import { rowOf, valueOf, valuesOf } from "../database/row.ts";
import type { Querying } from "../database/transaction.ts";
import { newId } from "../ids.ts";
import type { Limits, PayerLimits } from "../queue/search-job.ts";

/** What a token may do: `POST /v1/serp/search`, `GET /v1/usage` and their MCP tools, and the account pages. */
export const headerScopes = ["search", "usage", "billing"] as const;
/**
 * A token with the scope `door` has no other, and a daily limit: it stands in the address of a door, where proxies and histories
 * may keep it.
 */
export const scopes = [...headerScopes, "door"] as const;
export type Scope = (typeof scopes)[number];

/** Who sent an authenticated request: the organization of its token, and the terms of its plan. */
export interface Caller {
  organizationId: string;
  /** The id of the token, for the log. */
  tokenId: string;
  /** What the token may do. */
  scopes: readonly Scope[];
  suspended: boolean;
  plan: Plan;
  /** Absent if neither the organization nor the token has limits. */
  limits?: PayerLimits | undefined;
  /** Whether the payer wants answers kept. */
  keepsAnswers?: boolean | undefined;
}

const callerRow = rowOf({
  organizationId: z.string(),
  tokenId: z.string(),
  scopes: z.array(z.enum(scopes)),
  suspended: z.boolean(),
  keepsAnswers: z.boolean(),
  dayLimitMils: z.number().nullable(),
  monthLimitMils: z.number().nullable(),
  tokenDayLimitMils: z.number().nullable(),
  tokenMonthLimitMils: z.number().nullable(),
});
const foundRow = rowOf({ tokenHash: z.string() });

/**
 * Finds the callers of tokens by the tokens' hashes in hexadecimal: a row for {@link readCaller} by each hash, and nothing
 * for a token that is unknown, expired or revoked. Also records the use of a token, at most once in 30 s. It skips a token that
 * another process is recording, so that two batches never wait for each other.
 */
export async function findCallers(database: Database, tokenHashes: readonly string[]): Promise<Map<string, unknown>> {
  const { rows } = await database.query({
    name: "find_callers",
    text: `with recorded_use as (
        update tokens set last_used_at = now() where id in (
          select id from tokens
          where hash = any($1) and revoked_at is null and coalesce(last_used_at, '-infinity') < now() - interval '30 seconds'
          for no key update skip locked)
      )
      select encode(t.hash, 'hex') as token_hash, t.id as token_id, t.scopes, o.id as organization_id,
        o.suspended_at is not null as suspended, o.kept_answer_days > 0 as keeps_answers, ${planColumns}, o.day_limit_mils, o.month_limit_mils,
        t.day_limit_mils as token_day_limit_mils, t.month_limit_mils as token_month_limit_mils
      from tokens t join organizations o on o.id = t.organization_id join plans p on p.code = o.plan_code
      where t.hash = any($1) and t.revoked_at is null and (t.expires_at is null or t.expires_at > now())`,
    values: [tokenHashes.map((tokenHash) => Buffer.from(tokenHash, "hex"))],
  });
  return new Map(rows.map((row) => [foundRow.parse(row).tokenHash, row]));
}

/** Reads a row of {@link findCallers}. */
export function readCaller(found: unknown): Caller {
  const { dayLimitMils, monthLimitMils, tokenDayLimitMils, tokenMonthLimitMils, ...caller } = callerRow.parse(found);
  const organization = limitsOf(dayLimitMils, monthLimitMils);
  const ofToken = limitsOf(tokenDayLimitMils, tokenMonthLimitMils);
  const token = ofToken && { ...ofToken, tokenId: caller.tokenId };
  const limits = { ...(organization && { organization }), ...(token && { token }) };
  return { ...caller, plan: readPlan(found), limits: organization || token ? limits : undefined };
}

function limitsOf(dayMils: number | null, monthMils: number | null): Limits | undefined {
  if (dayMils === null && monthMils === null) return undefined;
  return { ...(dayMils !== null && { dayMils }), ...(monthMils !== null && { monthMils }) };
}

/** The Redis channel that announces changes of tokens, plans or organizations. Every API then drops its cache. */
export const identityChannel = "identity-changed";

export async function publishIdentityChange(redis: Redis): Promise<void> {
  await redis.publish(identityChannel, "");
}

/** Creates an organization without credit. @returns undefined if the plan does not exist. */
export async function createOrganization(
  database: Querying,
  organization: { name: string; planCode: string },
): Promise<{ organizationId: string; plan: Plan } | undefined> {
  const organizationId = newId("org");
  const { rows } = await database.query(
    `with created as (
       insert into organizations (id, name, plan_code) select $1, $2, p.code from plans p where p.code = $3 returning plan_code
     )
     select ${planColumns} from plans p join created on created.plan_code = p.code`,
    [organizationId, organization.name, organization.planCode],
  );
  return rows[0] ? { organizationId, plan: readPlan(rows[0]) } : undefined;
}

const organizationRow = rowOf({
  orgId: z.string(),
  name: z.string(),
  plan: z.string(),
  suspendedAt: z.date().nullable(),
  erasedAt: z.date().nullable(),
  balanceMils: z.number(),
  ledgerEntries: z.number(),
  createdAt: z.date(),
});

export async function showOrganization(database: Querying, organizationId: string) {
  const { rows } = await database.query(
    `select id as org_id, name, plan_code as plan, suspended_at, erased_at, balance_mils, version as ledger_entries, created_at
     from organizations where id = $1`,
    [organizationId],
  );
  return rows[0] && organizationRow.parse(rows[0]);
}

const formerRow = rowOf({ name: z.string(), plan: z.string(), isSuspended: z.boolean() });

/** What each change sets, from the `old` row and what that is joined with. */
const changes = {
  name: "name = $2 from old",
  isSuspended: "suspended_at = case when $2 then coalesce(o.suspended_at, now()) end from old",
  plan: "plan_code = p.code from old join plans p on p.code = $2",
};

/** @returns what the organization was before; undefined if there is none, or nothing to join with it. */
async function changeOrganization(database: Querying, what: keyof typeof changes, values: [id: string, to: unknown]) {
  const { rows } = await database.query(
    `with old as (
       select id, name, plan_code as plan, suspended_at is not null as is_suspended from organizations
       where id = $1 for no key update
     )
     update organizations o set ${changes[what]} where o.id = old.id returning old.name, old.plan, old.is_suspended`,
    values,
  );
  return rows[0] && formerRow.parse(rows[0]);
}

/** Gives an organization another name. @returns what it was before; undefined if it does not exist. */
export const renameOrganization = (database: Querying, organizationId: string, name: string) =>
  changeOrganization(database, "name", [organizationId, name]);

/** Suspends or resumes an organization. A repeat keeps the first time. @returns what it was before; undefined if it does not exist. */
export const setSuspended = (database: Querying, organizationId: string, suspended: boolean) =>
  changeOrganization(database, "isSuspended", [organizationId, suspended]);

/** Moves an organization to another plan. @returns what it was before; undefined if it or the plan does not exist. */
export const assignPlan = (database: Querying, organizationId: string, planCode: string) =>
  changeOrganization(database, "plan", [organizationId, planCode]);

/** Whether an organization was erased. It stays as it is until the end of the transaction. */
export async function isErased(transaction: Querying, organizationId: string): Promise<boolean> {
  const { rows } = await transaction.query(
    "select erased_at is not null as is_erased from organizations where id = $1 for no key update",
    [organizationId],
  );
  return rows[0] !== undefined && valueOf(z.boolean(), rows[0]);
}

/** Lets changes of an account, and of its tokens, come one after the other until the end of the transaction. */
export async function lockAccount(transaction: Querying, organizationId: string): Promise<void> {
  await transaction.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [organizationId]);
}

/** Lists all organizations in the order of their ids, from the first id after `after`. */
export async function listOrganizationIds(database: Database, after: string, limit: number): Promise<string[]> {
  const values = [after, limit];
  const { rows } = await database.query("select id from organizations where id > $1 order by id limit $2", values);
  return valuesOf(z.string(), rows);
}

/** Pages of the ids of all organizations. */
export async function* pagesOfOrganizations(database: Database, limit: number): AsyncGenerator<string[]> {
  for (let after: string | undefined = ""; after !== undefined; ) {
    const ids = await listOrganizationIds(database, after, limit);
    yield ids;
    after = ids.length < limit ? undefined : ids.at(-1);
  }
}
