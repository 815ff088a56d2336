/**
 * Limit usage, compared with the ledger. It is derived in bounded time, as where a limit is set: that of an organization from two
 * balances and the credit in between, that of a token from sums of 4,096 entries, which the rules of entries check.
 */

/** The UTC day of a time. An entry is as old as its transaction, which may commit later, but within a minute. */
export const countingDayOf = (time: string) => `((${time} - interval '1 minute') at time zone 'UTC')::date`;

/**
 * The version of the first entry on or after a day or month, in the order of the ledger. Entries that waited for a lock at
 * midnight are out of order, and the function is a binary search, so the minutes around midnight are read.
 */
const firstVersionOf = (start: string) => {
  const midnight = `(${start}::timestamp at time zone 'UTC')`;
  const next = `first_version_since(o.id, ${midnight} + interval '1 minute')`;
  return `coalesce((
    select min(l.version) from ledger_entries l where l.organization_id = o.id and l.created_at >= ${midnight}
      and l.version between first_version_since(o.id, ${midnight} - interval '1 minute') and ${next}), ${next})`;
};

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
