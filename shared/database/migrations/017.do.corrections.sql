-- An operator's correction of a balance: an entry of a kind of its own, because it may also take credit away, and is no spending.

-- Not validated here, so that no search waits for a scan: what exists keeps these rules already.
alter table ledger_entries
  drop constraint entry_kind_is_known,
  drop constraint only_charges_lower_a_balance,
  drop constraint grants_have_a_grant_id_and_the_rest_a_request_id,
  drop constraint whoever_gives_back_says_why,
  add constraint entry_kind_is_known check (kind in ('grant', 'charge', 'refund', 'reversal', 'correction')) not valid,
  add constraint only_charges_and_corrections_lower_a_balance check (
    case kind when 'charge' then amount_mils <= 0 when 'refund' then amount_mils = 0 when 'correction' then amount_mils <> 0
      else amount_mils >= 0 end) not valid,
  add constraint credit_has_a_grant_id_and_a_search_a_request_id check (
    (kind in ('grant', 'correction')) = (grant_id is not null)
    and (kind in ('grant', 'correction')) = (request_id is null)) not valid,
  add constraint whoever_gives_back_or_corrects_says_why check (
    kind not in ('refund', 'reversal', 'correction') or reason is not null) not valid;

-- Adds credit, or takes it away (mils below 0), once per correction id; a repeat returns the pair as it is. The balance never
-- falls below zero: its constraint refuses that. A correction is no spending: what the day and the month began with changes by
-- it too. No row comes back for an unknown organization.
create function correct_credit(organization text, correction_id text, mils bigint, why text) returns table (
  fresh boolean, balance_mils bigint, version bigint
) language plpgsql security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
  perform 1 from organizations o where o.id = organization for no key update;
  return query
  with entry as (
    insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, grant_id, reason)
    select o.id, o.version + 1, 'correction', mils, o.balance_mils + mils, correction_id, why from organizations o
    where o.id = organization
      and not exists (select 1 from ledger_entries l where l.grant_id = correction_id and l.kind = 'correction'
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

-- The mils that an organization had at this time, with the credit added and the corrections made since.
create or replace function began_with(organization text, since timestamptz) returns bigint language sql stable as $$
  select coalesce((select l.balance_after_mils from ledger_entries l
                   where l.organization_id = organization and l.version = f.version - 1), 0)
    + coalesce((select sum(l.amount_mils) from ledger_entries l
                where l.organization_id = organization and l.kind in ('grant', 'correction') and l.kind <> 'charge'
                  and l.version >= f.version), 0)::bigint
  from (select first_version_since(organization, since)) f (version)
$$;
