-- The truth about money: an append-only ledger, the charges that may still be reversed, and the functions that add credit.

-- Each change of a balance, with the balance after it. The versions of an organization run from 1 without a gap.
create table ledger_entries (
  organization_id text collate "C" not null references organizations (id),
  version bigint not null,
  -- A `charge` decides a search. A search that is not charged has a row in `refunds` instead. A `reversal` gives a charge back. A `grant`
  -- adds credit. A `correction` of an operator adds credit or takes it away, and does not count as spending.
  kind text not null,
  amount_mils bigint not null,
  balance_after_mils bigint not null,
  -- Set for a charge and a reversal.
  request_id text collate "C",
  -- Set for a grant and a correction. An id counts once, however often it is sent.
  grant_id text collate "C",
  -- Set for a charge and a reversal: the token of the search.
  token_id text collate "C",
  reason text,
  -- When the transaction began. It may then have waited for the lock, so only the versions tell the order.
  created_at timestamptz not null default now(),
  constraint one_entry_per_version primary key (organization_id, version),
  constraint entry_kind_is_known check (kind in ('grant', 'charge', 'reversal', 'correction')),
  constraint only_charges_and_corrections_lower_a_balance check (
    case kind when 'charge' then amount_mils <= 0 when 'correction' then amount_mils <> 0 else amount_mils >= 0 end),
  constraint balance_after_is_never_below_zero check (balance_after_mils between 0 and 9007199254740991),
  constraint credit_has_a_grant_id_and_a_search_a_request_id check (
    (kind in ('grant', 'correction')) = (grant_id is not null)
    and (kind in ('grant', 'correction')) = (request_id is null)),
  constraint a_reversal_and_a_correction_have_a_reason check (kind not in ('reversal', 'correction') or reason is not null)
);
create unique index one_charge_per_request on ledger_entries (request_id) where kind = 'charge';
create unique index one_reversal_per_request on ledger_entries (request_id) where kind = 'reversal';
create unique index one_entry_per_grant on ledger_entries (grant_id, kind) where grant_id is not null;
-- The account pages list and count by this index. It leaves out charges, which are found by the primary key, so it stays
-- small: of a million entries it holds the few of other kinds.
create index not_charges_by_organization on ledger_entries (organization_id, kind, version) include (amount_mils)
  where kind <> 'charge';

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% append only: % is refused', tg_argv[0], lower(tg_op) using errcode = 'restrict_violation';
end $$;

create trigger ledger_is_append_only before update or delete or truncate on ledger_entries
  for each statement execute function refuse_change('the ledger is');

-- Up to which version `ledger verify` has checked an organization, and the balance after it. The usual check goes on from there. A
-- row only moves forward, and only to an entry of the ledger with this balance. So one that disagrees with the ledger is the trace of
-- entries that are gone or altered, and stays until the owner deletes it.
create table ledger_checkpoints (
  organization_id text collate "C" primary key,
  version bigint not null,
  balance_mils bigint not null,
  -- When the organization was read, not when the check ended.
  checked_at timestamptz not null,
  constraint a_checkpoint_is_of_an_entry check (version > 0)
);

-- Keeps the i-th elements of the arrays as checkpoints. One that disagrees with the ledger is left out, as is one that is older than
-- the present one: two checks at once take none back. A present one that disagrees with the ledger is left alone.
create function keep_ledger_checkpoints(organization_ids text[], versions bigint[], balances bigint[], read_at timestamptz)
returns void language sql security definer set search_path = public, pg_temp as $$
  insert into ledger_checkpoints as c (organization_id, version, balance_mils, checked_at)
  select l.organization_id, l.version, l.balance_after_mils, least(read_at, now())
  from unnest(organization_ids, versions, balances) s (organization_id, version, balance_mils)
  cross join lateral (
    select l.* from ledger_entries l where l.organization_id = s.organization_id and l.version = s.version
      and l.balance_after_mils = s.balance_mils limit 1) l
  order by l.organization_id
  on conflict (organization_id) do update
    set version = excluded.version, balance_mils = excluded.balance_mils, checked_at = excluded.checked_at
    where (excluded.version, excluded.checked_at) > (c.version, c.checked_at) and exists (
      select from ledger_entries l where l.organization_id = c.organization_id and l.version = c.version
        and l.balance_after_mils = c.balance_mils)
$$;

-- Charges without an Idempotency-Key whose delivery is not confirmed. A row is the right to reverse its charge: the API
-- deletes it once a whole copy of the answer was handed over, and a reversal deletes it in its own transaction.
create table undelivered (
  request_id text collate "C" primary key,
  organization_id text collate "C" not null,
  charged_at timestamptz not null default now()
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_analyze_scale_factor = 1);

-- Adds an entry of credit, once per kind and id: a `grant`, or a `correction`, which takes credit away with mils below 0. A repeat
-- returns the balance and the version as they are. The id of another organization is refused by its index, a balance below 0 by its
-- constraint. Neither counts as spending, so the balances with which the day and the month began move with it.
-- Returns no row for an unknown organization.
create function change_credit(entry_kind text, organization text, given_id text, mils bigint, why text) returns table (
  fresh boolean, balance_mils bigint, version bigint
) language plpgsql security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
  perform 1 from organizations o where o.id = organization for no key update;
  return query
  with entry as (
    insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, grant_id, reason)
    select o.id, o.version + 1, entry_kind, mils, o.balance_mils + mils, given_id, why from organizations o
    where o.id = organization
      and not exists (select 1 from ledger_entries l where l.grant_id = given_id and l.kind = entry_kind
          and l.organization_id = organization)
    returning *
  ), pair as (
    update organizations o set balance_mils = e.balance_after_mils, version = e.version,
      day_began_with_mils = o.day_began_with_mils + mils, month_began_with_mils = o.month_began_with_mils + mils
    from entry e where o.id = e.organization_id
    returning o.balance_mils, o.version
  )
  select exists (select 1 from entry), coalesce(p.balance_mils, o.balance_mils), coalesce(p.version, o.version)
  from organizations o left join pair p on true
  where o.id = organization;
end $$;

-- Adds credit that was paid for, once per grant id, through change_credit(), whose lock holds until the end of the transaction.
-- The first top-up turns the plan `free` into `payg`, also where an operator has granted its credit already. Later ones leave the
-- plan alone: an operator may have moved the organization back to `free` on purpose.
-- Returns no row for an unknown organization.
create function topup(organization text, given_grant_id text, mils bigint) returns table (
  fresh boolean, balance_mils bigint, version bigint, plan_changed boolean
) language plpgsql security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
declare
  granted record;
  turned boolean;
begin
  select * into granted from change_credit('grant', organization, given_grant_id, mils, 'top-up');
  if not found then
    return;
  end if;
  update organizations o set plan_code = 'payg'
  where o.id = organization and o.plan_code = 'free' and o.first_topup_at is null;
  turned := found;
  update organizations o set first_topup_at = now() where o.id = organization and o.first_topup_at is null;
  return query select granted.fresh, granted.balance_mils, granted.version, turned;
end $$;
