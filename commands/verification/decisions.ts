import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf } from "../../shared/database/row.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { type FoundViolations, readPart, violationsOf } from "./violations.ts";

/** Refunds are kept for 30 days; the day of their deletion does not count. */
const keptHours = 29 * 24;
const recentHours = 2 * 24;
/** Read in one transaction, with the rest of their hour. */
const refundsPerSlice = 20_000;
const keysPerPage = 10_000;

/** Rules on small tables, whose rows are soon deleted, and on what operators have to deal with. */
const currentRules: Record<string, string> = {
  "an unconfirmed charge is recent and not reversed": `
    select u.request_id as subject, format('charged at %s, %s', u.charged_at,
      case when c.request_id is null then 'no charge' when r.request_id is not null then 'reversed' else 'too old' end) as found
    from undelivered u
    left join ledger_entries c on c.request_id = u.request_id and c.kind = 'charge'
    left join ledger_entries r on r.request_id = u.request_id and r.kind = 'reversal'
    where c.request_id is null or r.request_id is not null
      or u.charged_at < now() - make_interval(secs => ${protocolTimes.undeliveredViolationAfterMs / 1_000})`,
  "Postgres lost no entries, or an operator has closed the gap": `
    select organization_id as subject, format('%s: Redis had %s of version %s, Postgres %s of %s, %s mils, seen %s', id,
      redis_balance_mils, redis_version, balance_mils, version, balance_mils - redis_balance_mils, seen_at) as found
    from ledger_gaps where closed_at is null order by organization_id, id`,
};

/** The hour in which $1 hours of refunds begin. */
const firstHour = "select (date_trunc('hour', now(), 'UTC') - make_interval(hours => $1 - 1))::text as from";
/** The end of the hours from $1 on whose refunds are read together: that of $2 refunds more. */
const endOfSlice = `
  select coalesce((select date_trunc('hour', created_at, 'UTC') + interval '1 hour' from refunds
    where created_at >= $1 order by created_at offset $2 limit 1), 'infinity')::text as until`;
const [fromRow, untilRow] = [rowOf({ from: z.string() }), rowOf({ until: z.string() })];

/** Rules on the refunds of the UTC hours from $1 to $2. */
const refundRules: Record<string, string> = {
  "a search is charged or refunded, not both": `
    select f.request_id as subject, format('charged %s, refunded: %s', -c.amount_mils, f.reason) as found
    from refunds f join ledger_entries c on c.request_id = f.request_id and c.kind = 'charge'
    where f.created_at >= $1 and f.created_at < $2`,
  "the counts of searches not charged equal the refunds": `
    select organization_id as subject, format('%s of %s at %s: counted %s, refunds %s', token_id, reason, hour, counted, kept) as found
    from (select organization_id, hour, token_id, reason, searches as counted from refund_counts where hour >= $1 and hour < $2) c
    full join (select organization_id, date_trunc('hour', created_at, 'UTC') as hour, coalesce(token_id, '') as token_id, reason,
                 count(*) as kept
               from refunds where created_at >= $1 and created_at < $2 group by 1, 2, 3, 4) f
      using (organization_id, hour, token_id, reason)
    where counted is distinct from kept`,
};

/** Checks charges without a confirmed delivery, open gaps, and the refunds of the last two days, or of all days that are kept. */
export async function verifyDecisions(
  database: Database,
  { isFull, found }: { isFull: boolean; found: FoundViolations },
): Promise<void> {
  for (const [rule, query] of Object.entries(currentRules))
    found.add(...(await readPart(database, (read) => violationsOf(read, rule, query))));
  const { rows } = await database.query(firstHour, [isFull ? keptHours : recentHours]);
  for (let { from } = fromRow.parse(rows[0]); from !== "infinity"; )
    from = await readPart(database, async (read) => {
      const ends = await read(endOfSlice, [from, refundsPerSlice]);
      const { until } = untilRow.parse(ends.rows[0]);
      for (const [rule, query] of Object.entries(refundRules))
        found.add(...(await violationsOf(read, rule, query, [from, until])));
      return until;
    });
}

const keyRule = "a paid key has a charge that was not reversed";
const keyRow = rowOf({
  slot: z.number(),
  organizationId: z.string(),
  keyHash: z.string(),
  requestId: z.string(),
  /** Null if the charge stands. */
  wrong: z.string().nullable(),
});

/** Checks all keys that have paid. Their rows contain the answers, and no index has them by their requests. */
export async function verifyKeys(database: Database, found: FoundViolations): Promise<void> {
  for (let after: unknown[] = [-1, "", ""]; ; ) {
    const { rows } = await readPart(database, (read) => read(pageOfKeys, [...after, keysPerPage]));
    const keys = rows.map((row) => keyRow.parse(row));
    const wrong = keys.flatMap(({ wrong: text, requestId }) => (text === null ? [] : { text, requestId }));
    found.add(...wrong.map(({ text, requestId }) => ({ rule: keyRule, subject: requestId, found: text })));
    const last = keys.at(-1);
    if (!last) return;
    after = [last.slot, last.organizationId, last.keyHash];
  }
}

const pageOfKeys = `
  select k.slot, k.organization_id, k.key_hash, k.request_id,
    case when not exists (select from ledger_entries c where c.request_id = k.request_id and c.kind = 'charge'
        and c.organization_id = k.organization_id) then 'no charge under the key'
      when exists (select from ledger_entries r where r.request_id = k.request_id and r.kind = 'reversal') then 'reversed'
    end as wrong
  from key_payments k where (k.slot, k.organization_id, k.key_hash) > ($1::smallint, $2, $3)
  order by k.slot, k.organization_id, k.key_hash limit $4`;
