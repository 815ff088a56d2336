import type { Redis } from "ioredis";
import type { PoolClient } from "pg";
import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { verifyRedis } from "./verify-redis.ts";
import { queryAll, verifyStatementTimeoutMs, type Violation } from "./violation.ts";

/**
 * The invariants of the money, checked over all data. All statements read one snapshot of Postgres, so the service may
 * run meanwhile without a false alarm.
 */

const shownMax = 20;

/** What an owner's charges since the first entry of a day or month cost, without those that were reversed. */
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
  "the searches counted as not charged are the refunds": `
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
  "an unconfirmed charge stands, and is young": `
    select u.request_id as subject, format('charged at %s, %s', u.charged_at,
      case when c.request_id is null then 'no charge' when r.request_id is not null then 'reversed' else 'too old' end) as found
    from undelivered u
    left join ledger_entries c on c.request_id = u.request_id and c.kind = 'charge'
    left join ledger_entries r on r.request_id = u.request_id and r.kind = 'reversal'
    where c.request_id is null or r.request_id is not null
      or u.charged_at < now() - make_interval(secs => ${protocolTimes.undeliveredViolationAfterMs / 1_000})`,
  "a key has paid with a charge that stands": `
    select k.request_id as subject, 'no charge under the key' as found
    from key_payments k left join ledger_entries c on c.request_id = k.request_id and c.kind = 'charge'
    where c.request_id is null or c.organization_id <> k.organization_id`,
  "what counts against an organization's limits is what its ledger says": `
    select id as subject, format('counted %s and %s, the ledger has %s and %s', day, month, ledger_day, ledger_month) as found
    from (select o.id, o.day_began_with_mils - o.balance_mils as day, o.month_began_with_mils - o.balance_mils as month,
            ${spentSince("o.spending_day", "l.organization_id = o.id")} as ledger_day,
            ${spentSince("month_of(o.spending_day)", "l.organization_id = o.id")} as ledger_month
          from organizations o where o.spending_day is not null) c
    where day <> ledger_day or month <> ledger_month`,
  "what counts against a token's limits is what its organization's ledger says": `
    select id as subject, format('counted %s and %s, the ledger has %s and %s', day, month, ledger_day, ledger_month) as found
    from (select t.id, t.spent_day_mils as day, t.spent_month_mils as month,
            ${spentSince("t.spending_day", "l.organization_id = t.organization_id and l.token_id = t.id")} as ledger_day,
            ${spentSince("month_of(t.spending_day)", "l.organization_id = t.organization_id and l.token_id = t.id")} as ledger_month
          from tokens t where t.spending_day is not null) c
    where day <> ledger_day or month <> ledger_month`,
};

export interface VerificationReport {
  ok: boolean;
  organizations: number;
  entries: number;
  /** False if Redis was unreachable and only Postgres was checked. */
  redisChecked: boolean;
  violations: Violation[];
}

const countsRow = z.object({ organizations: z.number(), entries: z.number() });
const violationRow = z.object({ subject: z.string(), found: z.string() });

/** Checks every invariant and lists at most twenty violations of each. */
export async function verifyLedger(database: Database, redis: Redis | undefined): Promise<VerificationReport> {
  const client = await database.connect();
  try {
    await client.query("begin transaction isolation level repeatable read read only");
    await client.query(`set local statement_timeout = ${verifyStatementTimeoutMs}`);
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
