-- Ledger entries that Postgres lost: what a copy of a balance in Redis still knew of them.

-- If a Postgres that lagged behind takes over, or an old backup is restored, the newest entries are gone. Redis then has balances
-- that came after entries which Postgres does not have. Before such a copy is overwritten it is recorded here, and stays open until an
-- operator has dealt with it. Rows stay when an organization is erased, as in the audit trail, and have no foreign key either:
-- Postgres may have lost the organization too.
create table ledger_gaps (
  id text collate "C" primary key,
  organization_id text collate "C" not null,
  -- The pair in Redis.
  redis_version bigint not null,
  redis_balance_mils bigint not null,
  -- The pair in Postgres; 0 and 0 if Postgres lacks the organization.
  version bigint not null,
  balance_mils bigint not null,
  seen_at timestamptz not null default clock_timestamp(),
  closed_at timestamptz,
  -- What the operator did about the gap.
  note text,
  constraint gap_id_is_a_typeid check (id ~ '^gap_[0-7][0-9a-z]{25}$'),
  constraint a_closed_gap_has_a_note check ((closed_at is null) = (note is null) and length(note) <= 500)
);
create index open_ledger_gaps on ledger_gaps (organization_id, id) where closed_at is null;

create trigger ledger_gaps_are_only_closed before update on ledger_gaps for each row
  when (old.closed_at is not null or to_jsonb(new) - '{closed_at,note}'::text[] <> to_jsonb(old) - '{closed_at,note}'::text[])
  execute function refuse_change('ledger gaps are');
create trigger ledger_gaps_stay before delete or truncate on ledger_gaps
  for each statement execute function refuse_change('ledger gaps are');

-- Records the copies among these that came after an entry which the ledger does not have, with an entry in the audit trail. A copy
-- names the entry after which it came, or '' if that is unknown; then the balance after its version decides. A repeat under
-- the same id records nothing. A faulty Redis cannot fill the table: of an organization with 100 open gaps no more are recorded.
-- Returns the ids of all gaps among the copies, also of those that were recorded before.
create function record_ledger_gaps(
  ids text[], organization_ids text[], redis_versions bigint[], redis_balances bigint[], entry_ids text[],
  versions bigint[], balances bigint[]
) returns setof text language sql security definer set search_path = public, pg_temp as $$
  with missing as (
    select s.* from unnest(ids, organization_ids, redis_versions, redis_balances, entry_ids, versions, balances)
      as s (id, organization_id, redis_version, redis_balance_mils, entry_id, version, balance_mils)
    where not exists (
      select from ledger_entries l
      where l.organization_id = s.organization_id and l.version = s.redis_version
        and l.balance_after_mils = s.redis_balance_mils and s.entry_id in ('', l.request_id, l.grant_id))
  ), recorded as (
    insert into ledger_gaps (id, organization_id, redis_version, redis_balance_mils, version, balance_mils)
    select m.id, m.organization_id, m.redis_version, m.redis_balance_mils, m.version, m.balance_mils from missing m
    where (select count(*) from ledger_gaps g where g.organization_id = m.organization_id and g.closed_at is null) < 100
    on conflict do nothing
    returning *
  ), audited as (
    insert into audit_entries (actor_kind, actor, action, organization_id, subject, after)
    select 'service', 'reconciler', 'ledger.gap_found', r.organization_id, r.id,
      to_jsonb(r) - '{id,organization_id,seen_at,closed_at,note}'::text[]
    from recorded r
  )
  select m.id from missing m
$$;

-- Closes a gap with what the operator did. Returns no row for an unknown gap, and false for one that is closed already.
create function close_ledger_gap(gap text, why text) returns table (organization_id text, fresh boolean)
language plpgsql security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
  update ledger_gaps g set closed_at = clock_timestamp(), note = why where g.id = gap and g.closed_at is null;
  fresh := found;
  return query select g.organization_id, fresh from ledger_gaps g where g.id = gap;
end $$;
