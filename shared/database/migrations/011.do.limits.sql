-- Limits that a payer sets: mils a UTC day and a month, for an organization and for each of its tokens.

-- What an organization spent is how far its balance fell, so no settlement counts anything: the mils that it had when the
-- day and the month began, with the credit added since, less its balance. Null until a limit is set for the first time.
alter table organizations
  add column day_limit_mils bigint,
  add column month_limit_mils bigint,
  add column spending_day date,
  add column day_began_with_mils bigint,
  add column month_began_with_mils bigint,
  add constraint limits_are_never_negative check (
    day_limit_mils between 0 and 9007199254740991 and month_limit_mils between 0 and 9007199254740991) not valid,
  add constraint a_limited_organization_counts_its_spending check (
    day_limit_mils is null and month_limit_mils is null
    or num_nulls(spending_day, day_began_with_mils, month_began_with_mils) = 0) not valid;

-- Whose searches they are. Entries of earlier versions have none, and grants never do.
alter table ledger_entries add column token_id text collate "C";

-- Counted since the token got its first limit.
alter table tokens
  add column day_limit_mils bigint,
  add column month_limit_mils bigint,
  add column spending_day date,
  add column spent_day_mils bigint,
  add column spent_month_mils bigint,
  add constraint token_limits_are_never_negative check (
    day_limit_mils between 0 and 9007199254740991 and month_limit_mils between 0 and 9007199254740991) not valid,
  add constraint a_limited_token_counts_its_spending check (
    day_limit_mils is null and month_limit_mils is null
    or num_nulls(spending_day, spent_day_mils, spent_month_mils) = 0) not valid;

create function utc_today() returns date language sql stable as $$ select (now() at time zone 'UTC')::date $$;

create function month_of(day date) returns date language sql immutable as $$ select date_trunc('month', day)::date $$;

-- The first change of a balance on a new day begins that day's count: with the balance before it, and the credit that it adds.
create function begin_spending_day() returns trigger language plpgsql as $$
begin
  new.day_began_with_mils := old.balance_mils + new.day_began_with_mils - old.day_began_with_mils;
  if month_of(old.spending_day) < month_of(utc_today()) then
    new.month_began_with_mils := old.balance_mils + new.month_began_with_mils - old.month_began_with_mils;
  end if;
  new.spending_day := utc_today();
  return new;
end $$;

create trigger organizations_begin_spending_day before update of balance_mils on organizations for each row
  when (old.spending_day < utc_today()) execute function begin_spending_day();

create function begin_token_spending_day() returns trigger language plpgsql as $$
begin
  new.spent_day_mils := new.spent_day_mils - old.spent_day_mils;
  if month_of(old.spending_day) < month_of(utc_today()) then
    new.spent_month_mils := new.spent_month_mils - old.spent_month_mils;
  end if;
  new.spending_day := utc_today();
  return new;
end $$;

create trigger tokens_begin_spending_day before update of spent_day_mils on tokens for each row
  when (old.spending_day = new.spending_day and old.spending_day < utc_today()) execute function begin_token_spending_day();

-- What was spent by now on this day and in this month, and how much the limits leave: null without that limit. A count of an
-- earlier day or month is 0 by now.
create view organization_spending as
select o.id as organization_id, o.balance_mils, o.version, d.day, s.spent_day_mils, s.spent_month_mils,
  case when o.day_limit_mils is not null then greatest(o.day_limit_mils - s.spent_day_mils, 0) end as day_left_mils,
  case when o.month_limit_mils is not null then greatest(o.month_limit_mils - s.spent_month_mils, 0) end as month_left_mils
from organizations o
cross join lateral (select greatest(o.spending_day, utc_today()) as day) d
cross join lateral (
  select case when o.spending_day = d.day then o.day_began_with_mils - o.balance_mils when o.spending_day is not null then 0 end,
    case when month_of(o.spending_day) = month_of(d.day) then o.month_began_with_mils - o.balance_mils
      when o.spending_day is not null then 0 end
) s (spent_day_mils, spent_month_mils);

create view token_spending as
select t.id as token_id, t.organization_id, d.day, s.spent_day_mils, s.spent_month_mils,
  case when t.day_limit_mils is not null then greatest(t.day_limit_mils - s.spent_day_mils, 0) end as day_left_mils,
  case when t.month_limit_mils is not null then greatest(t.month_limit_mils - s.spent_month_mils, 0) end as month_left_mils
from tokens t
cross join lateral (select greatest(t.spending_day, utc_today()) as day) d
cross join lateral (
  select case when t.spending_day = d.day then t.spent_day_mils else 0 end,
    case when month_of(t.spending_day) = month_of(d.day) then t.spent_month_mils else 0 end
) s (spent_day_mils, spent_month_mils)
where t.spending_day is not null;

-- The spending that Redis keeps beside a balance: the day as days since 1970, the mils of that day and of its month, and the
-- day on which the next month begins.
create function spending_text(day date, spent_day_mils bigint, spent_month_mils bigint) returns text language sql immutable as $$
  select (day - date '1970-01-01') || ':' || spent_day_mils || ':' || spent_month_mils || ':'
    || ((month_of(day) + interval '1 month')::date - date '1970-01-01')
$$;

-- The version of an organization's first ledger entry since this time, or the one that comes next. The order of the ledger
-- decides: an entry whose transaction began before but waited for a lock counts with its neighbours.
create function first_version_since(organization text, since timestamptz) returns bigint language sql stable as $$
  with recursive halves (low, high) as (
    select 1::bigint, o.version + 1 from organizations o where o.id = organization
    union all
    select case when m.created_at < since then m.version + 1 else h.low end,
           case when m.created_at < since then h.high else m.version end
    from halves h
    cross join lateral (select l.version, l.created_at from ledger_entries l
                        where l.organization_id = organization and l.version = (h.low + h.high) / 2) m
    where h.low < h.high
  )
  select low from halves where low = high
$$;

-- The mils that an organization had at this time, with the credit added since.
create function began_with(organization text, since timestamptz) returns bigint language sql stable as $$
  select coalesce((select l.balance_after_mils from ledger_entries l
                   where l.organization_id = organization and l.version = f.version - 1), 0)
    + coalesce((select sum(l.amount_mils) from ledger_entries l
                where l.organization_id = organization and l.kind = 'grant' and l.version >= f.version), 0)::bigint
  from (select first_version_since(organization, since)) f (version)
$$;

-- Limits are set by the day on which the transaction began. Another transaction may have begun the next day's count meanwhile.
create function refuse_another_day() returns void language plpgsql as $$
begin
  if (clock_timestamp() at time zone 'UTC')::date <> utc_today() then
    raise exception 'the UTC day ended while a limit was set: set it again' using errcode = 'serialization_failure';
  end if;
end $$;

-- Sets or removes (null) an organization's limits. What it spent before on this day and in this month counts.
-- Returns whether the organization exists.
create function limit_organization(organization text, new_day_limit_mils bigint, new_month_limit_mils bigint)
returns boolean language plpgsql as $$
begin
  perform 1 from organizations o where o.id = organization for no key update;
  perform refuse_another_day();
  update organizations o set day_limit_mils = new_day_limit_mils, month_limit_mils = new_month_limit_mils, spending_day = utc_today(),
    day_began_with_mils = began_with(o.id, utc_today()::timestamp at time zone 'UTC'),
    month_began_with_mils = began_with(o.id, month_of(utc_today())::timestamp at time zone 'UTC')
  where o.id = organization;
  return found;
end $$;

-- What searches with a token cost between two versions of its organization's ledger, without the charges that were reversed.
create function token_spent(organization text, token text, first_version bigint, last_version bigint)
returns bigint language sql stable as $$
  select coalesce(-sum(l.amount_mils), 0)::bigint from ledger_entries l
  where l.organization_id = organization and l.token_id = token and l.kind in ('charge', 'reversal')
    and l.version between first_version and last_version
$$;

-- Sets or removes (null) a token's limits. The entries of this month are read before the organization is locked, and those
-- that came meanwhile after it: settlements do not wait for a long ledger. Returns whether the token exists.
create function limit_token(token text, new_day_limit_mils bigint, new_month_limit_mils bigint)
returns boolean language plpgsql as $$
declare
  organization text;
  seen bigint;
  first_of_day bigint;
  spent_day bigint;
  spent_month bigint;
begin
  select o.id, o.version into organization, seen
  from tokens t join organizations o on o.id = t.organization_id where t.id = token;
  if not found then
    return false;
  end if;
  first_of_day := first_version_since(organization, utc_today()::timestamp at time zone 'UTC');
  spent_day := token_spent(organization, token, first_of_day, seen);
  spent_month := spent_day + token_spent(organization, token,
    first_version_since(organization, month_of(utc_today())::timestamp at time zone 'UTC'), first_of_day - 1);
  perform 1 from organizations o where o.id = organization for no key update;
  perform refuse_another_day();
  update tokens t set day_limit_mils = new_day_limit_mils, month_limit_mils = new_month_limit_mils, spending_day = utc_today(),
    spent_day_mils = spent_day + late.mils, spent_month_mils = spent_month + late.mils
  from (select token_spent(organization, token, seen + 1, 9223372036854775807)) late (mils)
  where t.id = token;
  return true;
end $$;

-- settle(), with the token of each search and with limits: a charge beyond a limit is refused like one beyond the balance.
-- Admission refuses such a search before it runs; this is for the day on which Redis has lost its holds. Also returns what
-- the organization and the token spent by now, if they have limits (see spending_text).
create function settle_searches(
  request_ids text[], organization_ids text[], wanted text[], prices bigint[], reasons text[],
  key_hashes text[], fingerprints text[], token_ids text[]
) returns table (
  request_id text, organization_id text, kind text, amount_mils bigint, reason text, fresh boolean, reversed boolean,
  balance_mils bigint, version bigint, spending text, token_id text, token_spending text
) language plpgsql set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  perform 1 from organizations o where o.id = any (organization_ids) order by o.id for no key update;
  return query
  with asked as (
    select distinct on (a.request_id) a.*
    from unnest(request_ids, organization_ids, wanted, prices, reasons, key_hashes, fingerprints, token_ids) with ordinality
      as a (request_id, organization_id, wanted, price, reason, key_hash, fingerprint, token_id, place)
    order by a.request_id, a.place
  ), known as (
    select l.* from ledger_entries l where l.request_id = any (request_ids) and l.kind in ('charge', 'refund')
  ), open as (
    select a.*, o.balance_mils, o.version, o.day_left_mils, o.month_left_mils,
      t.day_left_mils as token_day_left_mils, t.month_left_mils as token_month_left_mils, p.fingerprint as paid_fingerprint,
      -- Of several searches under one key only the first can pay; the others follow it.
      a.key_hash is not null and a.wanted = 'charge' and row_number() over same_key > 1 as follows,
      first_value(a.fingerprint) over same_key as first_fingerprint
    from asked a
    join organization_spending o on o.organization_id = a.organization_id
    left join token_spending t on t.token_id = a.token_id
    left join paid_keys p on p.organization_id = a.organization_id and p.key_hash = a.key_hash and p.expires_at > now()
    where not exists (select 1 from known k where k.request_id = a.request_id)
    window same_key as (partition by a.organization_id, a.key_hash, a.wanted order by a.place)
  ), paying as (
    select f.*, f.wanted = 'charge' and f.paid_fingerprint is null and not f.follows as pays from open f
  ), by_token as (
    select p.*, case when p.pays then p.price else 0 end as cost,
      sum(case when p.pays then p.price else 0 end) over (partition by p.token_id order by p.place) as token_sum
    from paying p
  ), within_token as (
    select b.*, case when b.token_sum > b.token_day_left_mils then 'token_daily_limit'
      when b.token_sum > b.token_month_left_mils then 'token_monthly_limit' end as token_verdict
    from by_token b
  ), by_organization as (
    -- What is over the balance or a limit is refused together with all behind it: the sum never dips below zero.
    select w.*, sum(case when w.token_verdict is null then w.cost else 0 end) over (partition by w.organization_id order by w.place)
      as organization_sum
    from within_token w
  ), guarded as (
    select b.*, coalesce(b.token_verdict, case when b.organization_sum > b.balance_mils then 'out_of_credits'
      when b.organization_sum > b.day_left_mils then 'daily_limit'
      when b.organization_sum > b.month_left_mils then 'monthly_limit' end) as refused
    from by_organization b
  ), led as (
    select g.*, first_value(g.refused) over (partition by g.organization_id, g.key_hash, g.wanted order by g.place) as first_refused
    from guarded g
  ), decided as (
    select g.*,
      case when g.pays and g.refused is null then 'charge' else 'refund' end as kind,
      case
        when g.wanted <> 'charge' then g.reason
        when g.pays then g.refused
        when g.paid_fingerprint is null and g.first_refused is not null then g.first_refused
        when coalesce(g.paid_fingerprint, g.first_fingerprint) = g.fingerprint then 'already_paid'
        else 'idempotency_key_reused'
      end as verdict
    from led g
  ), entries as (
    insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, reason, token_id)
    select d.organization_id, d.version + row_number() over in_order, d.kind,
      case d.kind when 'charge' then -d.price else 0 end,
      d.balance_mils - sum(case d.kind when 'charge' then d.price else 0 end) over in_order, d.request_id, d.verdict, d.token_id
    from decided d
    window in_order as (partition by d.organization_id order by d.place)
    returning *
  ), owed as (
    insert into undelivered (request_id, organization_id)
    select d.request_id, d.organization_id from decided d where d.kind = 'charge' and d.key_hash is null
  ), paid as (
    insert into paid_keys as p (organization_id, key_hash, fingerprint, request_id, expires_at)
    select d.organization_id, d.key_hash, d.fingerprint, d.request_id, now() + interval '24 hours'
    from decided d where d.kind = 'charge' and d.key_hash is not null
    on conflict on constraint one_payment_per_key do update
      set fingerprint = excluded.fingerprint, request_id = excluded.request_id, expires_at = excluded.expires_at
  ), pairs as (
    update organizations o set balance_mils = o.balance_mils + s.amount_mils, version = o.version + s.entries
    from (select e.organization_id, sum(e.amount_mils) as amount_mils, count(*) as entries from entries e group by 1) s
    where o.id = s.organization_id
    returning o.id, o.balance_mils, o.version, o.spending_day, o.day_began_with_mils - o.balance_mils as spent_day_mils,
      o.month_began_with_mils - o.balance_mils as spent_month_mils
  ), counted as (
    update tokens t set spent_day_mils = t.spent_day_mils - s.amount_mils, spent_month_mils = t.spent_month_mils - s.amount_mils
    from (select e.token_id, sum(e.amount_mils) as amount_mils from entries e where e.kind = 'charge' group by 1) s
    where t.id = s.token_id and t.spending_day is not null
    returning t.id, t.spending_day, t.spent_day_mils, t.spent_month_mils
  )
  select r.request_id, r.organization_id, r.kind, r.amount_mils, r.reason, r.fresh,
    not r.fresh and exists (select 1 from ledger_entries b where b.request_id = r.request_id and b.kind = 'reversal'),
    coalesce(n.balance_mils, o.balance_mils), coalesce(n.version, o.version),
    case when n.id is null then spending_text(o.day, o.spent_day_mils, o.spent_month_mils)
      else spending_text(n.spending_day, n.spent_day_mils, n.spent_month_mils) end,
    coalesce(c.id, t.token_id),
    case when c.id is null then spending_text(t.day, t.spent_day_mils, t.spent_month_mils)
      else spending_text(c.spending_day, c.spent_day_mils, c.spent_month_mils) end
  from (
    select e.request_id, e.organization_id, e.kind, e.amount_mils, e.reason, true as fresh, e.token_id from entries e
    union all
    select k.request_id, k.organization_id, k.kind, k.amount_mils, k.reason, false, k.token_id from known k
  ) r
  join organization_spending o on o.organization_id = r.organization_id
  left join pairs n on n.id = r.organization_id
  left join token_spending t on t.token_id = r.token_id
  left join counted c on c.id = r.token_id;
end $$;

-- settle_with_answers(), likewise.
create function settle_keyed_searches(
  request_ids text[], organization_ids text[], wanted text[], prices bigint[], reasons text[],
  key_hashes text[], fingerprints text[], token_ids text[], bodies bytea[]
) returns table (
  request_id text, organization_id text, kind text, amount_mils bigint, reason text, fresh boolean, reversed boolean,
  balance_mils bigint, version bigint, spending text, token_id text, token_spending text, answer_of text, answer bytea
) language plpgsql set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  perform 1 from organizations o where o.id = any (organization_ids) order by o.id for no key update;
  return query
  with sent as (
    select distinct on (a.request_id) a.*
    from unnest(request_ids, key_hashes, fingerprints, bodies) with ordinality
      as a (request_id, key_hash, fingerprint, body, place)
    order by a.request_id, a.place
  ), decided as materialized (
    select d.*, s.key_hash, s.fingerprint, s.body, d.fresh and d.kind = 'charge' as pays
    from settle_searches(request_ids, organization_ids, wanted, prices, reasons, key_hashes, fingerprints, token_ids) d
    join sent s on s.request_id = d.request_id
  ), stored as (
    insert into answers as a (slot, organization_id, key_hash, request_id, body)
    select answer_slot(now()), d.organization_id, d.key_hash, d.request_id, d.body
    from decided d where d.pays and d.key_hash is not null and d.body is not null
    on conflict on constraint one_answer_per_key do update
      set request_id = excluded.request_id, body = excluded.body
    returning a.organization_id, a.key_hash, a.request_id, a.body
  )
  select d.request_id, d.organization_id, d.kind, d.amount_mils, d.reason, d.fresh, d.reversed, d.balance_mils, d.version,
    d.spending, d.token_id, d.token_spending, coalesce(n.request_id, e.request_id), coalesce(n.body, e.body)
  from decided d
  -- Paid by this very call, or by an earlier one.
  left join stored n on n.organization_id = d.organization_id and n.key_hash = d.key_hash and d.reason = 'already_paid'
  left join paid_keys p on p.organization_id = d.organization_id and p.key_hash = d.key_hash
    and p.fingerprint = d.fingerprint and p.expires_at > now()
    and (d.reason = 'already_paid' or d.kind = 'charge' and not d.fresh and p.request_id = d.request_id)
  left join answers e on e.slot = answer_slot(p.expires_at - interval '24 hours')
    and e.organization_id = p.organization_id and e.key_hash = p.key_hash;
end $$;

-- For the processes of the last release, which know no tokens here: the same decisions by the same statement.
create or replace function settle(
  request_ids text[], organization_ids text[], wanted text[], prices bigint[], reasons text[],
  key_hashes text[], fingerprints text[]
) returns table (
  request_id text, organization_id text, kind text, amount_mils bigint, reason text, fresh boolean, reversed boolean,
  balance_mils bigint, version bigint
) language sql as $$
  select d.request_id, d.organization_id, d.kind, d.amount_mils,
    -- They read only the reasons that they know.
    case when d.reason in ('daily_limit', 'monthly_limit') then 'out_of_credits' else d.reason end,
    d.fresh, d.reversed, d.balance_mils, d.version
  from settle_searches(request_ids, organization_ids, wanted, prices, reasons, key_hashes, fingerprints, null::text[]) d
$$;

-- A reversal also gives back what counts against the limits of the token.
create or replace function reverse_charges(organization_ids text[], request_ids text[], why text) returns table (
  organization_id text, reversed text[], balance_mils bigint, version bigint
) language plpgsql set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  perform 1 from organizations o where o.id = any (organization_ids) order by o.id for no key update;
  return query
  with claimed as (
    delete from undelivered u where u.request_id = any (request_ids) and u.organization_id = any (organization_ids)
    returning u.request_id
  ), entries as (
    insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, reason, token_id)
    select o.id, o.version + row_number() over in_order, 'reversal', -l.amount_mils,
      o.balance_mils - sum(l.amount_mils) over in_order, l.request_id, why, l.token_id
    from claimed c
    join ledger_entries l on l.request_id = c.request_id and l.kind = 'charge'
    join organizations o on o.id = l.organization_id
    window in_order as (partition by o.id order by l.version)
    returning *
  ), pairs as (
    update organizations o set balance_mils = o.balance_mils + s.amount_mils, version = o.version + s.entries
    from (select e.organization_id, sum(e.amount_mils) as amount_mils, count(*) as entries from entries e group by 1) s
    where o.id = s.organization_id
    returning o.id, o.balance_mils, o.version
  ), counted as (
    update tokens t set spent_day_mils = t.spent_day_mils - s.amount_mils, spent_month_mils = t.spent_month_mils - s.amount_mils
    from (select e.token_id, sum(e.amount_mils) as amount_mils from entries e group by 1) s
    where t.id = s.token_id and t.spending_day is not null
  )
  select o.id, array(select e.request_id from entries e where e.organization_id = o.id),
    coalesce(n.balance_mils, o.balance_mils), coalesce(n.version, o.version)
  from organizations o left join pairs n on n.id = o.id
  where o.id = any (organization_ids);
end $$;

-- Credit added is no spending: what the day and the month began with grows by it.
create or replace function grant_credit(organization text, given_grant_id text, mils bigint, why text) returns table (
  fresh boolean, balance_mils bigint, version bigint
) language plpgsql as $$
#variable_conflict use_column
begin
  perform 1 from organizations o where o.id = organization for no key update;
  return query
  with entry as (
    insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, grant_id, reason)
    select o.id, o.version + 1, 'grant', mils, o.balance_mils + mils, given_grant_id, why from organizations o
    where o.id = organization
      and not exists (select 1 from ledger_entries l where l.grant_id = given_grant_id and l.kind = 'grant'
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

-- They run as their owner, who alone may write the ledger, and look each search up by an index (see 007 and 008).
do $$
declare
  writer regprocedure;
begin
  for writer in
    select oid::regprocedure from pg_proc where pronamespace = 'public'::regnamespace and proname in
      ('settle', 'settle_searches', 'settle_keyed_searches', 'reverse_charges', 'grant_credit', 'limit_organization', 'limit_token')
  loop
    execute format('alter function %s security definer set search_path = public, pg_temp', writer);
  end loop;
  for writer in
    select oid::regprocedure from pg_proc where pronamespace = 'public'::regnamespace
      and proname in ('settle_searches', 'settle_keyed_searches')
  loop
    execute format('alter function %s set enable_seqscan = off', writer);
    execute format('alter function %s set enable_hashjoin = off', writer);
    execute format('alter function %s set enable_mergejoin = off', writer);
  end loop;
end $$;
