-- The end of a search: what decides whether it is charged, and what gives a charge back that was not delivered.

-- Searches that are not charged, one row each, which is deleted after 30 days. They leave no entry in the ledger, which holds only money,
-- so callers whose searches fail write a bounded number of rows that stay. A second run of the search finds the decision here and follows it. Jobs
-- and holds end within minutes, so nothing asks for a decision of 30 days ago. The version is that of the ledger when the search was
-- decided, and the number gives the order behind it: it is assigned while the organization is locked.
create table refunds (
  number bigint generated always as identity,
  request_id text collate "C" not null,
  organization_id text collate "C" not null references organizations (id),
  version bigint not null,
  reason text not null,
  token_id text collate "C",
  created_at timestamptz not null default now(),
  constraint one_refund_per_request primary key (request_id)
) with (autovacuum_vacuum_scale_factor = 0.02);
create unique index refunds_by_organization on refunds (organization_id, number);
create index refunds_by_age on refunds (created_at);

-- How many searches were not charged in each UTC hour, for ever: the statement that decides counts them. The rows are bounded by
-- hours, tokens and reasons, however many searches fail. token_id is '' where the sweeper decided, which does not know the token.
-- Pages keep room for new versions of their rows, so that counting writes to no index.
create table refund_counts (
  organization_id text collate "C" not null references organizations (id),
  hour timestamptz not null,
  token_id text collate "C" not null default '',
  reason text not null,
  searches integer not null,
  last_request_id text collate "C" not null,
  constraint one_count_per_hour primary key (organization_id, hour, token_id, reason)
) with (fillfactor = 70);
-- For `ledger verify`, which compares hour by hour. Rows of an hour lie together, so this index is tiny and new rows write nothing to it.
create index refund_counts_by_hour on refund_counts using brin (hour);

-- Deletes the oldest refunds that are 30 days old, at most so many. Returns how many. A row is never updated, so its place is its own.
create function clear_old_refunds(rows_max integer) returns bigint language plpgsql security definer
set search_path = public, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  deleted bigint;
begin
  delete from refunds r where r.ctid = any (array(
    select o.ctid from refunds o where o.created_at < now() - interval '720 hours' order by o.created_at limit rows_max));
  get diagnostics deleted = row_count;
  return deleted;
end $$;

-- What the larger of two limits leaves; null if one of them is none.
create function left_of(present_mils bigint, admitted_mils bigint, spent_mils bigint) returns bigint language sql immutable as $$
  select case when present_mils is not null and admitted_mils is not null
    then greatest(greatest(present_mils, admitted_mils) - spent_mils, 0) end
$$;

-- Decides searches, each exactly once: the i-th elements of the arrays are one search. The limits are those that admitted it,
-- null where there was none. Redis admits no more than they allow together. Only after it has lost its holds do charges meet a
-- limit here, so that a period's charges stay within the larger limit all the same.
-- Under a key, the answer of a charge is stored in the transaction of the charge. For a search that was charged before, or whose
-- key had paid, the stored answer comes back, with the request that paid for it: of all answers under a key only the first counts.
-- A charge is an entry of the ledger. A refund is a row in `refunds` and one more in `refund_counts`; it raises no version.
-- The first statement takes the locks; the second sees a snapshot younger than them, so that known requests, versions and
-- balances are exact. In one statement the snapshot would be older than the wait for the lock, and versions would get gaps.
-- The plan is made once per connection, perhaps while the tables are small. Lateral with a limit makes it look each search and key
-- up by an index; a join would read all of them.
-- Returns one row per request: its decision, whether this call made it, the organization's newest pair, and what the
-- organization and the token spent by now, if they have limits (see spending_text).
create function decide_searches(
  request_ids text[], organization_ids text[], wanted text[], prices bigint[], reasons text[], token_ids text[],
  key_hashes text[], fingerprints text[], bodies bytea[],
  day_limits bigint[], month_limits bigint[], token_day_limits bigint[], token_month_limits bigint[]
) returns table (
  request_id text, organization_id text, kind text, amount_mils bigint, reason text, fresh boolean, reversed boolean,
  balance_mils bigint, version bigint, spending text, token_id text, token_spending text, answer_of text, answer bytea
) language plpgsql security definer set search_path = public, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
begin
  perform 1 from organizations o where o.id = any (organization_ids) order by o.id for no key update;
  return query
  with asked as (
    select distinct on (a.request_id) a.*
    from unnest(request_ids, organization_ids, wanted, prices, reasons, token_ids, key_hashes, fingerprints, bodies,
        day_limits, month_limits, token_day_limits, token_month_limits) with ordinality
      as a (request_id, organization_id, wanted, price, reason, token_id, key_hash, fingerprint, body,
        day_limit, month_limit, token_day_limit, token_month_limit, place)
    order by a.request_id, a.place
  ), known as (
    -- Only a charge needs the answer that is stored under the key.
    select a.request_id, l.*, case a.wanted when 'charge' then a.key_hash end as key_hash, a.fingerprint
    from asked a
    cross join lateral (
      (select l.organization_id, l.kind, l.amount_mils, l.reason, l.token_id
       from ledger_entries l where l.request_id = a.request_id and l.kind = 'charge' limit 1)
      union all
      (select f.organization_id, 'refund', 0, f.reason, f.token_id from refunds f where f.request_id = a.request_id limit 1)
    ) l
  ), open as (
    select a.*, o.balance_mils, o.version, o.erased_at, left_of(o.day_limit_mils, a.day_limit, o.spent_day_mils) as day_left_mils,
      left_of(o.month_limit_mils, a.month_limit, o.spent_month_mils) as month_left_mils,
      left_of(t.day_limit_mils, a.token_day_limit, t.spent_day_mils) as token_day_left_mils,
      left_of(t.month_limit_mils, a.token_month_limit, t.spent_month_mils) as token_month_left_mils,
      p.fingerprint as paid_fingerprint,
      -- Of several searches under one key only the first can pay; the others follow it.
      a.key_hash is not null and a.wanted = 'charge' and row_number() over same_key > 1 as follows,
      first_value(a.fingerprint) over same_key as first_fingerprint
    from asked a
    join organization_spending o on o.organization_id = a.organization_id
    left join token_spending t on t.token_id = a.token_id
    left join lateral (
      select p.fingerprint from key_payments p
      where p.organization_id = a.organization_id and p.key_hash = a.key_hash and p.expires_at > now() limit 1
    ) p on a.key_hash is not null
    where not exists (select 1 from known k where k.request_id = a.request_id)
    window same_key as (partition by a.organization_id, a.key_hash, a.wanted order by a.place)
  ), paying as (
    select f.*, f.wanted = 'charge' and f.paid_fingerprint is null and not f.follows as pays from open f
  ), by_token as (
    select p.*, case when p.pays then p.price else 0 end as cost,
      sum(case when p.pays then p.price else 0 end) over (partition by p.token_id order by p.place) as token_sum
    from paying p
  ), within_token as (
    select b.*, case when b.token_sum > b.token_month_left_mils then 'token_monthly_limit'
      when b.token_sum > b.token_day_left_mils then 'token_daily_limit' end as token_verdict
    from by_token b
  ), by_organization as (
    -- The first search that exceeds the balance or a limit is refused, and so are all searches behind it: the balance never
    -- falls below zero.
    select w.*, sum(case when w.token_verdict is null then w.cost else 0 end) over (partition by w.organization_id order by w.place)
      as organization_sum
    from within_token w
  ), guarded as (
    select b.*, coalesce(b.token_verdict, case
      -- Its search ends after Redis lost the hold for which an erasure waits. The credit that is left is never spent.
      when b.erased_at is not null or b.organization_sum > b.balance_mils then 'out_of_credits'
      when b.organization_sum > b.month_left_mils then 'monthly_limit'
      when b.organization_sum > b.day_left_mils then 'daily_limit' end) as refused
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
      end as verdict,
      -- The ledger's version behind this decision: a charge raises it, a refund does not.
      g.version + count(*) filter (where g.pays and g.refused is null) over (partition by g.organization_id order by g.place)
        as new_version
    from led g
  ), entries as (
    insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, token_id)
    select d.organization_id, d.new_version, 'charge', -d.price,
      d.balance_mils - sum(d.price) over (partition by d.organization_id order by d.place), d.request_id, d.token_id
    from decided d where d.kind = 'charge'
    returning *
  ), refunded as (
    insert into refunds (request_id, organization_id, version, reason, token_id)
    select d.request_id, d.organization_id, d.new_version, d.verdict, d.token_id
    from decided d where d.kind = 'refund' order by d.place
  ), failed as (
    insert into refund_counts as c (organization_id, hour, token_id, reason, searches, last_request_id)
    select d.organization_id, date_trunc('hour', now(), 'UTC'), coalesce(d.token_id, ''), d.verdict, count(*), max(d.request_id)
    from decided d where d.kind = 'refund' group by 1, 3, 4 order by 1, 3, 4
    on conflict on constraint one_count_per_hour do update
      set searches = c.searches + excluded.searches, last_request_id = greatest(c.last_request_id, excluded.last_request_id)
  ), owed as (
    insert into undelivered (request_id, organization_id)
    select d.request_id, d.organization_id from decided d where d.kind = 'charge' and d.key_hash is null
  ), stored as (
    insert into answers as a (slot, organization_id, key_hash, request_id, body, fingerprint, expires_at)
    select answer_slot(now()), d.organization_id, d.key_hash, d.request_id, d.body, d.fingerprint, now() + interval '24 hours'
    from decided d where d.kind = 'charge' and d.key_hash is not null
    on conflict on constraint one_answer_per_key do update
      set request_id = excluded.request_id, body = excluded.body, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at
    returning a.organization_id, a.key_hash, a.request_id, a.body
  ), pairs as (
    update organizations o set balance_mils = o.balance_mils + s.amount_mils, version = o.version + s.entries
    from (select e.organization_id, sum(e.amount_mils) as amount_mils, count(*) as entries from entries e group by 1) s
    where o.id = s.organization_id
    returning o.id, o.balance_mils, o.version, o.spending_day, o.day_began_with_mils - o.balance_mils as spent_day_mils,
      o.month_began_with_mils - o.balance_mils as spent_month_mils
  ), counted as (
    update tokens t set spent_day_mils = t.spent_day_mils - s.amount_mils, spent_month_mils = t.spent_month_mils - s.amount_mils
    from (select e.token_id, sum(e.amount_mils) as amount_mils from entries e group by 1) s
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
      else spending_text(c.spending_day, c.spent_day_mils, c.spent_month_mils) end,
    coalesce(s.request_id, e.request_id), coalesce(s.body, e.body)
  from (
    select d.request_id, d.organization_id, d.kind, case d.kind when 'charge' then -d.price else 0 end as amount_mils,
      d.verdict as reason, true as fresh, d.token_id, d.key_hash, d.fingerprint
    from decided d
    union all
    select k.request_id, k.organization_id, k.kind, k.amount_mils, k.reason, false, k.token_id, k.key_hash, k.fingerprint from known k
  ) r
  join organization_spending o on o.organization_id = r.organization_id
  left join pairs n on n.id = r.organization_id
  left join token_spending t on t.token_id = r.token_id
  left join counted c on c.id = r.token_id
  -- The answer that is stored under its key, paid for by this call or by an earlier one.
  left join stored s on s.organization_id = r.organization_id and s.key_hash = r.key_hash and r.reason = 'already_paid'
  left join lateral (
    select p.* from key_payments p
    where p.organization_id = r.organization_id and p.key_hash = r.key_hash and p.expires_at > now() limit 1
  ) p on p.fingerprint = r.fingerprint
    and (r.reason = 'already_paid' or r.kind = 'charge' and not r.fresh and p.request_id = r.request_id)
  left join answers e on e.slot = p.slot and e.organization_id = p.organization_id and e.key_hash = p.key_hash;
end $$;

-- Charges one search, the usual end while there is little load. decide_searches() takes twice as long for one search as these
-- statements, because its plan covers every case. Where a case is not the usual one (the search was decided before, its key has
-- paid, the credit does not suffice, there are or were limits, the organization was erased) it decides here, too.
-- The first statement takes the lock; the others see what was written until then. No other search can pay under the key in between.
create function charge_alone(
  organization text, request text, price_mils bigint, token text, used_key text, used_fingerprint text, sent_body bytea,
  day_limit bigint, month_limit bigint, token_day_limit bigint, token_month_limit bigint
) returns table (
  request_id text, organization_id text, kind text, amount_mils bigint, reason text, fresh boolean, reversed boolean,
  balance_mils bigint, version bigint, spending text, token_id text, token_spending text, answer_of text, answer bytea
) language plpgsql security definer set search_path = public, pg_temp set enable_seqscan = off as $$
#variable_conflict use_column
declare
  owner record;
begin
  select o.balance_mils - price_mils as balance_mils, o.version + 1 as version, o.spending_day, o.erased_at into owner
  from organizations o where o.id = organization for no key update;
  if not found or owner.balance_mils < 0 or owner.spending_day is not null or owner.erased_at is not null
    or exists (select from ledger_entries l where l.request_id = request and l.kind = 'charge')
    or exists (select from refunds f where f.request_id = request)
    or used_key is not null and exists (
      select from key_payments p where p.organization_id = organization and p.key_hash = used_key and p.expires_at > now())
    or exists (select from tokens t where t.id = token and t.spending_day is not null)
  then
    return query select d.* from decide_searches(array[request], array[organization], array['charge'], array[price_mils],
      array[null], array[token], array[used_key], array[used_fingerprint], array[sent_body],
      array[day_limit], array[month_limit], array[token_day_limit], array[token_month_limit]) d;
    return;
  end if;
  insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, token_id)
  values (organization, owner.version, 'charge', -price_mils, owner.balance_mils, request, token);
  if used_key is null then
    insert into undelivered (request_id, organization_id) values (request, organization);
  else
    insert into answers (slot, organization_id, key_hash, request_id, body, fingerprint, expires_at)
    values (answer_slot(now()), organization, used_key, request, sent_body, used_fingerprint, now() + interval '24 hours')
    on conflict on constraint one_answer_per_key do update
      set request_id = excluded.request_id, body = excluded.body, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at;
  end if;
  update organizations o set balance_mils = owner.balance_mils, version = owner.version where o.id = organization;
  return query select request, organization, 'charge', -price_mils, null::text, true, false, owner.balance_mils, owner.version,
    null::text, token, null::text, null::text, null::bytea;
end $$;

-- Gives back charges whose answers were not delivered. Only those that are still in `undelivered` are reversed: taking that row away
-- makes a reversal happen once. A reversal counts for the day and the month of its charge.
-- Returns the newest balance and version of each organization that is named, and which of the requests this call reversed.
create function reverse_charges(organization_ids text[], request_ids text[], why text) returns table (
  organization_id text, reversed text[], balance_mils bigint, version bigint
) language plpgsql security definer set search_path = public, pg_temp set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  perform 1 from organizations o where o.id = any (organization_ids) order by o.id for no key update;
  return query
  with claimed as (
    delete from undelivered u where u.request_id = any (request_ids) and u.organization_id = any (organization_ids)
    returning u.request_id
  ), begun as materialized (
    -- Postgres reads a row only for a charge of an earlier day, and once.
    select o.id, first_version_since(o.id, utc_today()::timestamp at time zone 'UTC') as version
    from organizations o where o.id = any (organization_ids)
  ), charges as (
    select l.*, b.first_of_today,
      o.spending_day is null or is_counted_since(l.organization_id, greatest(o.spending_day, utc_today()), l.version, l.created_at,
        b.first_of_today) as of_day,
      o.spending_day is null
        or is_counted_since(l.organization_id, month_of(greatest(o.spending_day, utc_today())), l.version, l.created_at,
          b.first_of_today) as of_month,
      t.spending_day is not null
        and is_counted_since(l.organization_id, greatest(t.spending_day, utc_today()), l.version, l.created_at,
          b.first_of_today) as of_token_day,
      t.spending_day is not null
        and is_counted_since(l.organization_id, month_of(greatest(t.spending_day, utc_today())), l.version, l.created_at,
          b.first_of_today) as of_token_month
    from claimed c
    join ledger_entries l on l.request_id = c.request_id and l.kind = 'charge'
    join organizations o on o.id = l.organization_id
    left join tokens t on t.id = l.token_id
    cross join lateral (select case when l.created_at < utc_today()::timestamp at time zone 'UTC'
      then (select b.version from begun b where b.id = l.organization_id limit 1) end) b (first_of_today)
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
    where l.version < l.first_of_today
  ), pairs as (
    -- The present day did not spend these mils, so they are not given back to it: it begins with them, as with credit.
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
