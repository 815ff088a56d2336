-- A reversal counts for the day and the month of its charge: one after midnight leaves no more room in the new day than its limit.

-- Whether the count that began then has the charge: by the order of the ledger, in which a charge whose transaction began before
-- midnight but waited for a lock counts with its neighbours.
create function is_counted_since(organization text, day date, charge_version bigint, charged_at timestamptz)
returns boolean language sql stable as $$
  select charged_at >= day::timestamp at time zone 'UTC'
    or charge_version >= first_version_since(organization, day::timestamp at time zone 'UTC')
$$;

-- The sum of the reversals since a version whose charges are from before it, by their tokens.
create function reversed_from_before(organization text, first_version bigint) returns table (token_id text, mils bigint)
language sql stable as $$
  select r.token_id, sum(r.amount_mils)::bigint
  from ledger_entries r
  cross join lateral (select c.version from ledger_entries c where c.request_id = r.request_id and c.kind = 'charge' limit 1) c
  where r.organization_id = organization and r.kind = 'reversal' and r.version >= first_version and c.version < first_version
  group by r.token_id
$$;

-- The mils that an organization had at this time, with the credit added, the corrections made, and the earlier charges given back since.
create or replace function began_with(organization text, since timestamptz) returns bigint language sql stable as $$
  select coalesce((select l.balance_after_mils from ledger_entries l
                   where l.organization_id = organization and l.version = f.version - 1), 0)
    + coalesce((select sum(l.amount_mils) from ledger_entries l
                where l.organization_id = organization and l.kind in ('grant', 'correction') and l.kind <> 'charge'
                  and l.version >= f.version), 0)::bigint
    + coalesce((select sum(r.mils) from reversed_from_before(organization, f.version) r), 0)::bigint
  from (select first_version_since(organization, since)) f (version)
$$;

-- What searches with a token cost between two versions of its organization's ledger, without the charges that were reversed:
-- those since `counted_from`.
drop function token_spent(text, text, bigint, bigint);
create function token_spent(organization text, token text, first_version bigint, last_version bigint, counted_from bigint)
returns bigint language sql stable as $$
  select coalesce(-sum(l.amount_mils), 0)::bigint from ledger_entries l
  where l.organization_id = organization and l.token_id = token and l.version between first_version and last_version
    and (l.kind = 'charge' or l.kind = 'reversal' and exists (
      select from ledger_entries c where c.request_id = l.request_id and c.kind = 'charge' and c.version >= counted_from))
$$;

create or replace function limit_token(token text, new_day_limit_mils bigint, new_month_limit_mils bigint)
returns boolean language plpgsql security definer set search_path = public, pg_temp as $$
declare
  organization text;
  seen bigint;
  of_day bigint;
  of_month bigint;
  spent_day bigint;
  spent_month bigint;
begin
  select o.id, o.version into organization, seen
  from tokens t join organizations o on o.id = t.organization_id where t.id = token;
  if not found then
    return false;
  end if;
  of_day := first_version_since(organization, utc_today()::timestamp at time zone 'UTC');
  of_month := first_version_since(organization, month_of(utc_today())::timestamp at time zone 'UTC');
  spent_day := token_spent(organization, token, of_day, seen, of_day);
  spent_month := token_spent(organization, token, of_month, seen, of_month);
  perform 1 from organizations o where o.id = organization for no key update;
  perform refuse_another_day();
  update tokens t set day_limit_mils = new_day_limit_mils, month_limit_mils = new_month_limit_mils, spending_day = utc_today(),
    spent_day_mils = spent_day + token_spent(organization, token, seen + 1, 9223372036854775807, of_day),
    spent_month_mils = spent_month + token_spent(organization, token, seen + 1, 9223372036854775807, of_month)
  where t.id = token;
  return true;
end $$;

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

-- Counts that have such a reversal by now are counted anew: of the organizations with limits that have one in this month.
do $$
declare
  counted record;
begin
  for counted in
    select o.id, o.spending_day, o.day_limit_mils, o.month_limit_mils, f.of_day, f.of_month
    from organizations o
    cross join lateral (select first_version_since(o.id, utc_today()::timestamp at time zone 'UTC') as of_day,
      first_version_since(o.id, month_of(utc_today())::timestamp at time zone 'UTC') as of_month) f
    where (o.spending_day is not null or exists (select from tokens t where t.organization_id = o.id and t.spending_day is not null))
      and (exists (select from reversed_from_before(o.id, f.of_day)) or exists (select from reversed_from_before(o.id, f.of_month)))
  loop
    perform limit_organization(counted.id, counted.day_limit_mils, counted.month_limit_mils) where counted.spending_day is not null;
    perform limit_token(t.id, t.day_limit_mils, t.month_limit_mils) from tokens t
    where t.spending_day is not null and t.id in (
      select r.token_id from reversed_from_before(counted.id, counted.of_day) r
      union select r.token_id from reversed_from_before(counted.id, counted.of_month) r);
  end loop;
end $$;
