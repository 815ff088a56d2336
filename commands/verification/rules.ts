/**
 * The invariants of ledger entries, checked on slices of them: $1 are organizations, and of each the entries after a version ($2)
 * up to another ($3), where the balance after the first of these versions was $4.
 */

/** The parts of a slice, and their entries. An entry before version 1 would belong to the first part. */
export const ofSlice = `
  with part as materialized (
    select p.*, case when p.after_version = 0 then -9007199254740991 else p.after_version + 1 end as first_version
    from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
      as p (organization_id, after_version, last_version, begins_with_mils)
  ), entry as materialized (
    select l.*, p.begins_with_mils from part p
    join ledger_entries l on l.organization_id = p.organization_id and l.version between p.first_version and p.last_version
  )`;

const chargeOfReversal = `
  select c.* from ledger_entries c
  where c.request_id = r.request_id and c.kind = 'charge' and c.organization_id = r.organization_id limit 1`;

const another = (kind: string) => `e.kind = '${kind}' and exists (
  select from ledger_entries d where d.request_id = e.request_id and d.kind = '${kind}'
    and (d.organization_id, d.version) <> (e.organization_id, e.version))`;

/** The day a reversal's transaction began. */
const dayOf = "date_trunc('day', r.created_at, 'UTC')";

/** Each rule with the query that finds its violations in a slice, as rows of `subject` and `found`. */
export const entryRules: Record<string, string> = {
  "each entry's balance is the one before it plus its amount, and never below 0": `
    select organization_id as subject, format('version %s: %s after %s', version, balance_after_mils, amount_mils) as found
    from (select *, lag(balance_after_mils, 1, begins_with_mils) over (partition by organization_id order by version) as before
          from entry) e
    where balance_after_mils <> before + amount_mils or balance_after_mils < 0`,
  "a search has at most one charge and one reversal": `
    select distinct e.request_id as subject, format('%s charges, %s reversals',
      (select count(*) from ledger_entries l where l.request_id = e.request_id and l.kind = 'charge'),
      (select count(*) from ledger_entries l where l.request_id = e.request_id and l.kind = 'reversal')) as found
    from entry e where ${another("charge")} or ${another("reversal")}`,
  "a reversal gives back exactly one charge of the same organization": `
    select r.request_id as subject, format('reversed %s, charged %s', r.amount_mils, c.amount_mils) as found
    from entry r left join lateral (${chargeOfReversal}) c on true
    where r.kind = 'reversal' and (c.request_id is null or c.amount_mils + r.amount_mils <> 0)`,
  "only a charge or a correction lowers a balance": `
    select organization_id as subject, format('version %s: %s of %s', version, kind, amount_mils) as found
    from entry where amount_mils < 0 and kind not in ('charge', 'correction')`,
  "a reversal on a later day than its charge is on record, and no other is": `
    select r.request_id as subject, format('charged at %s, reversed at %s, on record: %s', c.created_at, r.created_at, t.mils) as found
    from entry r cross join lateral (${chargeOfReversal}) c
    left join late_reversals t on t.organization_id = r.organization_id and t.version = r.version
    where r.kind = 'reversal' and (
      (c.created_at < ${dayOf} - interval '1 minute'
        or c.created_at < ${dayOf} and c.version < first_version_since(c.organization_id, ${dayOf})) <> (t.version is not null)
      or (t.mils, t.charge_version) <> (r.amount_mils, c.version) or t.version is not null and t.token_id is distinct from r.token_id)`,
  // Of the chunks that the slice completes.
  "what a token spent in 4,096 entries is on record": `
    select s.token_id as subject,
      format('entries %s to %s: spent %s, on record: %s', s.chunk * 4096 + 1, (s.chunk + 1) * 4096, s.mils, t.mils) as found
    from (
      select p.organization_id, h.chunk, l.token_id, -sum(l.amount_mils) as mils
      from part p cross join lateral generate_series(p.after_version / 4096, p.last_version / 4096 - 1) as h (chunk)
      join ledger_entries l on l.organization_id = p.organization_id
        and l.version between h.chunk * 4096 + 1 and (h.chunk + 1) * 4096
      where l.kind in ('charge', 'reversal') and l.token_id is not null group by 1, 2, 3) s
    left join token_sums t on t.organization_id = s.organization_id and t.token_id = s.token_id and t.chunk = s.chunk
    where s.mils is distinct from t.mils`,
};

/**
 * Limit usage, compared with the ledger. It is derived in bounded time, as where a limit is set: that of an organization from two
 * balances and the credit in between, that of a token from sums of 4,096 entries, which the rules of entries check.
 */

/** The UTC day of a time. An entry is as old as its transaction, which may commit later, but within a minute. */
export const countingDayOf = (time: string) => `((${time} - interval '1 minute') at time zone 'UTC')::date`;

/** The version of the first entry on or after a day or month, in the order of the ledger. */
const firstVersionOf = (start: string) => `first_version_since(o.id, ${start}::timestamp at time zone 'UTC')`;

/** Without a checkpoint, or with $2, all are compared. Else those are that may have changed since the organization was read. */
const mayHaveChanged = (counted: string) => `
  o.id = any ($1) and ${counted}.spending_day is not null
  and ($2 or c.version is null or ${counted}.spending_day >= ${countingDayOf("c.checked_at")})`;

const found = "format('counted %s and %s, the ledger has %s and %s', day, month, ledger_day, ledger_month) as found";

/** Each rule with the query that finds its violations among the organizations $1, as rows of `organization_id`, `subject` and `found`. */
export const spendingRules: Record<string, string> = {
  "an organization's limit usage equals its ledger's total for the period": `
    select id as organization_id, id as subject, ${found}
    from (
      select o.id, o.day_began_with_mils - o.balance_mils as day, o.month_began_with_mils - o.balance_mils as month,
        spent_since(o.id, null, f.of_day) as ledger_day, spent_since(o.id, null, f.of_month) as ledger_month
      from organizations o left join ledger_checkpoints c on c.organization_id = o.id
      cross join lateral (
        select ${firstVersionOf("o.spending_day")}, ${firstVersionOf("month_of(o.spending_day)")}) f (of_day, of_month)
      where ${mayHaveChanged("o")}) counted
    where day <> ledger_day or month <> ledger_month`,
  "a token's limit usage equals its ledger's total for the period": `
    select organization_id, id as subject, ${found}
    from (
      select t.id, t.organization_id, t.spent_day_mils as day, t.spent_month_mils as month,
        spent_since(o.id, t.id, f.of_day) as ledger_day, spent_since(o.id, t.id, f.of_month) as ledger_month
      from organizations o join tokens t on t.organization_id = o.id
      left join ledger_checkpoints c on c.organization_id = o.id
      cross join lateral (
        select ${firstVersionOf("t.spending_day")}, ${firstVersionOf("month_of(t.spending_day)")}) f (of_day, of_month)
      where ${mayHaveChanged("t")}) counted
    where day <> ledger_day or month <> ledger_month`,
};
