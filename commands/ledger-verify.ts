import type { Redis } from "ioredis";
import type { PoolClient } from "pg";
import { z } from "zod";
import { indexEntryOf, readIndexEntry } from "../shared/credits/open-holds.ts";
import { holdIndexKey, keysOf } from "../shared/credits/redis-keys.ts";
import type { Database } from "../shared/database/pool.ts";
import { protocolTimes } from "../shared/protocol-times.ts";

/**
 * The invariants of the money, checked over all data. All statements read one snapshot of Postgres, so the service may
 * run meanwhile without a false alarm.
 */

const shownMax = 20;
const organizationsPerPage = 500;
const statementTimeoutMs = 600_000;

/** The total of an owner's charges since the first entry of a day or month, without reversed ones. */
const spentSince = (start: string, owner: string) => `
  (select coalesce(-sum(l.amount_mils), 0) from ledger_entries l
   left join ledger_entries c on l.kind = 'reversal' and c.request_id = l.request_id and c.kind = 'charge'
   where ${owner} and l.kind in ('charge', 'reversal') and coalesce(c.version, l.version) >= (
     select min(f.version) from ledger_entries f
     where f.organization_id = l.organization_id and f.created_at >= ${start}::timestamp at time zone 'UTC'))`;

/** Each rule with the query that finds its violations, as rows of `subject` and `found`. */
const rules: Record<string, string> = {
  "a balance is the sum of its organization's ledger entries": `
    select o.id as subject, format('balance %s, entries sum to %s', o.balance_mils, coalesce(sum(l.amount_mils), 0)) as found
    from organizations o left join ledger_entries l on l.organization_id = o.id
    group by o.id having o.balance_mils <> coalesce(sum(l.amount_mils), 0)`,
  "versions run from 1 without a gap": `
    select o.id as subject, format('version %s, %s entries up to %s', o.version, count(l.version), max(l.version)) as found
    from organizations o left join ledger_entries l on l.organization_id = o.id
    group by o.id having o.version <> count(l.version) or o.version <> coalesce(max(l.version), 0)`,
  "each entry's balance is the one before it plus its amount, and never below 0": `
    select organization_id as subject, format('version %s: %s after %s', version, balance_after_mils, amount_mils) as found
    from (select *, coalesce(lag(balance_after_mils) over (partition by organization_id order by version), 0) as before
          from ledger_entries) l
    where balance_after_mils <> before + amount_mils or balance_after_mils < 0`,
  "a search has at most one charge and one reversal": `
    select request_id as subject, format('%s charges, %s reversals',
      count(*) filter (where kind = 'charge'), count(*) filter (where kind = 'reversal')) as found
    from ledger_entries where request_id is not null group by request_id
    having count(*) filter (where kind = 'charge') > 1 or count(*) filter (where kind = 'reversal') > 1`,
  "a search is charged or refunded, not both": `
    select f.request_id as subject, format('charged %s, refunded: %s', -c.amount_mils, f.reason) as found
    from refunds f join ledger_entries c on c.request_id = f.request_id and c.kind = 'charge'`,
  // Of the days of which all refunds are kept.
  "the counts of searches not charged equal the refunds": `
    select organization_id as subject, format('%s of %s at %s: counted %s, refunds %s', token_id, reason, hour, counted, kept) as found
    from (select organization_id, hour, token_id, reason, searches as counted from refund_counts) c
    full join (select organization_id, date_trunc('hour', created_at, 'UTC') as hour, coalesce(token_id, '') as token_id, reason,
                 count(*) as kept from refunds group by 1, 2, 3, 4) f using (organization_id, hour, token_id, reason)
    where hour > now() - interval '29 days' and counted is distinct from kept`,
  "a reversal gives back exactly one unkeyed charge of the same organization": `
    select r.request_id as subject, format('reversed %s, charged %s', r.amount_mils, c.amount_mils) as found
    from ledger_entries r
    left join ledger_entries c on c.request_id = r.request_id and c.kind = 'charge' and c.organization_id = r.organization_id
    left join key_payments k on k.request_id = r.request_id
    where r.kind = 'reversal' and (c.request_id is null or c.amount_mils + r.amount_mils <> 0 or k.request_id is not null)`,
  "only a charge or a correction lowers a balance": `
    select organization_id as subject, format('version %s: %s of %s', version, kind, amount_mils) as found
    from ledger_entries where amount_mils < 0 and kind not in ('charge', 'correction')`,
  "an unconfirmed charge is recent and not reversed": `
    select u.request_id as subject, format('charged at %s, %s', u.charged_at,
      case when c.request_id is null then 'no charge' when r.request_id is not null then 'reversed' else 'too old' end) as found
    from undelivered u
    left join ledger_entries c on c.request_id = u.request_id and c.kind = 'charge'
    left join ledger_entries r on r.request_id = u.request_id and r.kind = 'reversal'
    where c.request_id is null or r.request_id is not null
      or u.charged_at < now() - make_interval(secs => ${protocolTimes.undeliveredViolationAfterMs / 1_000})`,
  "a paid key has a charge that was not reversed": `
    select k.request_id as subject, 'no charge under the key' as found
    from key_payments k left join ledger_entries c on c.request_id = k.request_id and c.kind = 'charge'
    where c.request_id is null or c.organization_id <> k.organization_id`,
  "an organization's limit usage equals its ledger's total for the period": `
    select id as subject, format('counted %s and %s, the ledger has %s and %s', day, month, ledger_day, ledger_month) as found
    from (select o.id, o.day_began_with_mils - o.balance_mils as day, o.month_began_with_mils - o.balance_mils as month,
            ${spentSince("o.spending_day", "l.organization_id = o.id")} as ledger_day,
            ${spentSince("month_of(o.spending_day)", "l.organization_id = o.id")} as ledger_month
          from organizations o where o.spending_day is not null) c
    where day <> ledger_day or month <> ledger_month`,
  "a token's limit usage equals its ledger's total for the period": `
    select id as subject, format('counted %s and %s, the ledger has %s and %s', day, month, ledger_day, ledger_month) as found
    from (select t.id, t.spent_day_mils as day, t.spent_month_mils as month,
            ${spentSince("t.spending_day", "l.organization_id = t.organization_id and l.token_id = t.id")} as ledger_day,
            ${spentSince("month_of(t.spending_day)", "l.organization_id = t.organization_id and l.token_id = t.id")} as ledger_month
          from tokens t where t.spending_day is not null) c
    where day <> ledger_day or month <> ledger_month`,
  "Postgres lost no entries, or an operator has closed the gap": `
    select organization_id as subject, format('%s: Redis had %s of version %s, Postgres %s of %s, %s mils, seen %s', id,
      redis_balance_mils, redis_version, balance_mils, version, balance_mils - redis_balance_mils, seen_at) as found
    from ledger_gaps where closed_at is null order by organization_id, id`,
};

export interface VerificationReport {
  ok: boolean;
  organizations: number;
  entries: number;
  /** False if Redis was unreachable and only Postgres was checked. */
  redisChecked: boolean;
  violations: Violation[];
}

/** A broken invariant, as `ledger verify` reports it. */
interface Violation {
  rule: string;
  /** The organization or request that breaks it. */
  subject: string;
  found: string;
}

const countsRow = z.object({ organizations: z.number(), entries: z.number() });
const violationRow = z.object({ subject: z.string(), found: z.string() });

/** Checks every invariant and lists at most twenty violations of each. */
export async function verifyLedger(database: Database, redis: Redis | undefined): Promise<VerificationReport> {
  const client = await database.connect();
  try {
    await client.query("begin transaction isolation level repeatable read read only");
    await client.query(`set local statement_timeout = ${statementTimeoutMs}`);
    const { rows } = await queryAll(
      client,
      "select (select count(*) from organizations) as organizations, (select count(*) from ledger_entries) as entries",
    );
    const counts = countsRow.parse(rows[0]);
    const violations: Violation[] = [];
    for (const [rule, query] of Object.entries(rules)) violations.push(...(await violationsOf(client, rule, query)));
    await client.query("rollback");
    if (redis) violations.push(...(await verifyRedis(client, redis)));
    return { ok: violations.length === 0, ...counts, redisChecked: redis !== undefined, violations };
  } finally {
    client.release();
  }
}

async function violationsOf(client: PoolClient, rule: string, query: string): Promise<Violation[]> {
  const { rows } = await queryAll(client, `${query} limit ${shownMax}`);
  return rows.map((row) => ({ rule, ...violationRow.parse(row) }));
}

/**
 * Runs a statement that reads whole tables: the pool's own timeout is for statements on the path of a search. The type of
 * `pg` does not have the field.
 */
const queryAll = (client: PoolClient, text: string, values: unknown[] = []) =>
  client.query({ text, values, query_timeout: statementTimeoutMs } as { text: string; values: unknown[] });

const copyRule = "a balance in Redis equals Postgres' balance of that version";
const sumRule = "the held sum is the sum of the open holds";
const tokenRule = "a token's held sum is the sum of the open holds of its searches";
const overdueRule = "no hold is open after its deadline and the grace period";
const indexRule = "the index has exactly the open holds, each with its deadline";

const hashReply = z.record(z.string(), z.string());
const holdReply = z.tuple([hashReply, hashReply]);
const idRow = z.object({ id: z.string() });
const balanceRow = z.object({ id: z.string(), balance_mils: z.number(), version: z.number() });

/**
 * Compares Redis with Postgres and with itself, while the service runs: a copy of a balance may be older than Postgres,
 * but never newer; a hold may be open, but never long after its deadline.
 */
async function verifyRedis(client: PoolClient, redis: Redis): Promise<Violation[]> {
  const found = await strayEntries(redis);
  for (let after = ""; ; ) {
    const text = "select id from organizations where id > $1 order by id limit $2";
    const page = await queryAll(client, text, [after, organizationsPerPage]);
    const ids = page.rows.map((row) => idRow.parse(row).id);
    if (ids.length === 0) return found;
    found.push(...(await violationsOfHolds(redis, ids)), ...(await impossibleCopies(client, redis, ids)));
    after = ids.at(-1) ?? "";
  }
}

async function violationsOfHolds(redis: Redis, ids: readonly string[]): Promise<Violation[]> {
  const [seconds] = await redis.time();
  const latestMs = Number(seconds) * 1_000 - protocolTimes.overdueViolationAfterMs;
  const organizations = await Promise.all(ids.map((id) => readHolds(redis, id)));
  const open = organizations.flatMap(({ holds }) => holds);
  const wrongSums = organizations.flatMap(({ organizationId, heldMils, holds }) => {
    const sum = holds.reduce((mils, hold) => mils + hold.mils, 0);
    const found = `${heldMils} held, holds sum to ${sum}`;
    return sum === heldMils ? [] : [{ rule: sumRule, subject: organizationId, found }];
  });
  const overdue = open
    .filter((hold) => hold.deadlineMs < latestMs)
    .map(({ requestId, deadlineMs }) => {
      const deadline = new Date(deadlineMs).toISOString();
      return { rule: overdueRule, subject: requestId, found: `still open, its deadline was ${deadline}` };
    });
  const ofTokens = organizations.flatMap(wrongTokenSums);
  return [...wrongSums, ...ofTokens, ...overdue, ...(await unindexedHolds(redis, open))];
}

interface OpenHold {
  organizationId: string;
  requestId: string;
  mils: number;
  /** By Redis' clock. */
  deadlineMs: number;
  keyHash: string;
}

async function readHolds(redis: Redis, organizationId: string) {
  const keys = keysOf(organizationId);
  const read = await redis.multi().hgetall(keys.holds).hgetall(keys.tokens).exec();
  const [{ held = "0", ...hash }, tokens] = holdReply.parse(read?.map(([, reply]) => reply));
  const holds = Object.entries(hash).map(([requestId, hold]): OpenHold => {
    const [mils, deadlineMs, keyHash = ""] = hold.split(":");
    return { organizationId, requestId, mils: Number(mils), deadlineMs: Number(deadlineMs), keyHash };
  });
  return { organizationId, heldMils: Number(held), holds, tokens };
}

function wrongTokenSums({ tokens, holds }: Awaited<ReturnType<typeof readHolds>>): Violation[] {
  const open = new Set(holds.map(({ requestId }) => requestId));
  const sums = new Map<string, number>();
  for (const [requestId, hold] of Object.entries(tokens)) {
    const [, mils, tokenId] = /^(\d+):(tok_.*)$/.exec(hold) ?? [];
    if (tokenId && open.has(requestId)) sums.set(tokenId, (sums.get(tokenId) ?? 0) + Number(mils));
  }
  const named = Object.keys(tokens).flatMap((field) =>
    field.startsWith("held:") ? [field.slice("held:".length)] : [],
  );
  return [...new Set([...sums.keys(), ...named])].flatMap((tokenId) => {
    const [held, sum] = [Number(tokens[`held:${tokenId}`] ?? 0), sums.get(tokenId) ?? 0];
    return held === sum ? [] : [{ rule: tokenRule, subject: tokenId, found: `${held} held, holds sum to ${sum}` }];
  });
}

/** Redis is read before Postgres, so a copy that is newer than Postgres cannot be right. */
async function impossibleCopies(client: PoolClient, redis: Redis, ids: string[]): Promise<Violation[]> {
  const copies = await Promise.all(ids.map((id) => redis.hmget(keysOf(id).balance, "balance", "version")));
  const text = "select id, balance_mils, version from organizations where id = any($1) order by id";
  const { rows } = await queryAll(client, text, [ids]);
  return rows.flatMap((row, at): Violation[] => {
    const truth = balanceRow.parse(row);
    const [balance, version] = copies[at] ?? [];
    if (version === null || version === undefined || Number(version) < truth.version) return [];
    if (Number(version) === truth.version && Number(balance) === truth.balance_mils) return [];
    const found = `Redis ${balance} of version ${version}, Postgres ${truth.balance_mils} of ${truth.version}`;
    return [{ rule: copyRule, subject: truth.id, found }];
  });
}

/**
 * The open holds without an entry in the index, or with another deadline in it. A hold and its entry are written and deleted in
 * one step. So a hold that still exists at the second look lacked its entry at the first.
 */
async function unindexedHolds(redis: Redis, open: readonly OpenHold[]): Promise<Violation[]> {
  const deadlines = await Promise.all(open.map((hold) => redis.zscore(holdIndexKey, indexEntryOf(hold))));
  const missing = open.filter(({ deadlineMs }, at) => Number(deadlines[at]) !== deadlineMs);
  const isOpen = await Promise.all(missing.map((hold) => hasHold(redis, hold)));
  return missing
    .filter((_, at) => isOpen[at])
    .map(({ requestId }) => ({
      rule: indexRule,
      subject: requestId,
      found: "open, but not in the index with its deadline",
    }));
}

/** The entries of the index that have no hold. */
async function strayEntries(redis: Redis): Promise<Violation[]> {
  const entries = await redis.zrange(holdIndexKey, 0, "-1");
  const isOpen = await Promise.all(entries.map((entry) => hasHold(redis, readIndexEntry(entry))));
  const stray = entries.filter((_, at) => !isOpen[at]);
  const deadlines = await Promise.all(stray.map((entry) => redis.zscore(holdIndexKey, entry)));
  return stray
    .filter((_, at) => deadlines[at] !== null)
    .map((entry) => ({
      rule: indexRule,
      subject: readIndexEntry(entry).requestId,
      found: "in the index, but not open",
    }));
}

async function hasHold(redis: Redis, { organizationId, requestId }: Pick<OpenHold, "organizationId" | "requestId">) {
  return (await redis.hexists(keysOf(organizationId).holds, requestId)) === 1;
}
