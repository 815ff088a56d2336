-- A reversal counts for the day and the month of its charge: one after midnight leaves no more room in the new day than its limit.

-- Whether the count that began then has the charge: by the order of the ledger, in which a charge whose transaction began before
-- midnight but waited for a lock counts with its neighbours.
create function is_counted_since(organization text, day date, charge_version bigint, charged_at timestamptz)
returns boolean language sql stable as $$
  select charged_at >= day::timestamp at time zone 'UTC'
    or charge_version >= first_version_since(organization, day::timestamp at time zone 'UTC')
$$;

-- The few reversals that came on a later day than their charges: within minutes of midnight, or after an outage.
create table late_reversals (
  organization_id text collate "C" not null,
  version bigint not null,
  charge_version bigint not null,
  token_id text collate "C",
  mils bigint not null,
  constraint one_row_per_late_reversal primary key (organization_id, version)
);
insert into late_reversals (organization_id, version, charge_version, token_id, mils)
select r.organization_id, r.version, c.version, r.token_id, r.amount_mils
from ledger_entries r
join ledger_entries c on c.request_id = r.request_id and c.kind = 'charge'
where r.kind = 'reversal' and r.created_at >= month_of(utc_today())::timestamp at time zone 'UTC'
  and (c.created_at at time zone 'UTC')::date < (r.created_at at time zone 'UTC')::date;

create or replace function reverse_charges(organization_ids text[], request_ids text[], why text) returns table (
  organization_id text, reversed text[], balance_mils bigint, version bigint
) language plpgsql security definer set search_path = public, pg_temp set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  perform 1 from organizations o where o.id = any (organization_ids) order by o.id for no key update;
  return query
  with claimed as (
    delete from undelivered u where u.request_id = any (request_ids) and u.organization_id = any (organization_ids)
    returning u.request_id
  ), charges as (
    select l.*,
      o.spending_day is null or is_counted_since(l.organization_id, greatest(o.spending_day, utc_today()), l.version, l.created_at)
        as of_day,
      o.spending_day is null
        or is_counted_since(l.organization_id, month_of(greatest(o.spending_day, utc_today())), l.version, l.created_at) as of_month,
      t.spending_day is not null
        and is_counted_since(l.organization_id, greatest(t.spending_day, utc_today()), l.version, l.created_at) as of_token_day,
      t.spending_day is not null
        and is_counted_since(l.organization_id, month_of(greatest(t.spending_day, utc_today())), l.version, l.created_at)
        as of_token_month
    from claimed c
    join ledger_entries l on l.request_id = c.request_id and l.kind = 'charge'
    join organizations o on o.id = l.organization_id
    left join tokens t on t.id = l.token_id
  ), entries as (
    insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, reason, token_id)
    select o.id, o.version + row_number() over in_order, 'reversal', -l.amount_mils,
      o.balance_mils - sum(l.amount_mils) over in_order, l.request_id, why, l.token_id
    from charges l
    join organizations o on o.id = l.organization_id
    window in_order as (partition by o.id order by l.version)
    returning *
  ), late as (
    insert into late_reversals (organization_id, version, charge_version, token_id, mils)
    select e.organization_id, e.version, l.version, e.token_id, e.amount_mils
    from entries e join charges l on l.request_id = e.request_id
    where not is_counted_since(l.organization_id, utc_today(), l.version, l.created_at)
  ), pairs as (
    -- What the day did not spend is not given back to it: it begins with these mils, as with credit.
    update organizations o set balance_mils = o.balance_mils + s.mils, version = o.version + s.entries,
      day_began_with_mils = o.day_began_with_mils + s.mils - s.day_mils,
      month_began_with_mils = o.month_began_with_mils + s.mils - s.month_mils
    from (select l.organization_id, -sum(l.amount_mils) as mils, count(*) as entries,
            coalesce(-sum(l.amount_mils) filter (where l.of_day), 0) as day_mils,
            coalesce(-sum(l.amount_mils) filter (where l.of_month), 0) as month_mils
          from charges l group by 1) s
    where o.id = s.organization_id
    returning o.id, o.balance_mils, o.version
  ), counted as (
    update tokens t set spent_day_mils = t.spent_day_mils - s.day_mils, spent_month_mils = t.spent_month_mils - s.month_mils
    from (select l.token_id, coalesce(-sum(l.amount_mils) filter (where l.of_token_day), 0) as day_mils,
            coalesce(-sum(l.amount_mils) filter (where l.of_token_month), 0) as month_mils
          from charges l group by 1) s
    where t.id = s.token_id and t.spending_day is not null
  )
  select o.id, array(select e.request_id from entries e where e.organization_id = o.id),
    coalesce(n.balance_mils, o.balance_mils), coalesce(n.version, o.version)
  from organizations o left join pairs n on n.id = o.id
  where o.id = any (organization_ids);
end $$;
