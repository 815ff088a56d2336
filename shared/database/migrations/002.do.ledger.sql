-- The truth about money: an append-only ledger, and the only functions that write to it.

create table ledger_entries (
  organization_id text collate "C" not null references organizations (id),
  version bigint not null,
  kind text not null,
  amount_mils bigint not null,
  balance_after_mils bigint not null,
  request_id text collate "C",
  grant_id text collate "C",
  reason text,
  created_at timestamptz not null default now(),
  constraint one_entry_per_version primary key (organization_id, version),
  constraint entry_kind_is_known check (kind in ('grant', 'charge', 'refund', 'reversal')),
  constraint only_charges_lower_a_balance check (
    case kind when 'charge' then amount_mils <= 0 when 'refund' then amount_mils = 0 else amount_mils >= 0 end),
  constraint balance_after_is_never_below_zero check (balance_after_mils between 0 and 9007199254740991),
  constraint grants_have_a_grant_id_and_the_rest_a_request_id check (
    (kind = 'grant') = (grant_id is not null) and (kind = 'grant') = (request_id is null)),
  constraint whoever_gives_back_says_why check (kind not in ('refund', 'reversal') or reason is not null)
);

create unique index one_deciding_entry_per_request on ledger_entries (request_id) where kind in ('charge', 'refund');
create unique index one_reversal_per_request on ledger_entries (request_id) where kind = 'reversal';
create unique index one_entry_per_grant on ledger_entries (grant_id) where kind = 'grant';

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'the ledger is append only: % is refused', lower(tg_op) using errcode = 'restrict_violation';
end $$;

create trigger ledger_is_append_only before update or delete or truncate on ledger_entries
  for each statement execute function refuse_change();

-- A charge without an Idempotency-Key whose answer nobody has confirmed yet. The row is the right to reverse it: the API
-- deletes it after the last byte, and whoever reverses must delete it in the same transaction.
create table undelivered (
  request_id text collate "C" primary key,
  organization_id text collate "C" not null,
  charged_at timestamptz not null default now()
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_analyze_scale_factor = 1);

-- A key that has paid: for 24 hours its answer is owed, and no second charge can be made under it.
create table paid_keys (
  organization_id text collate "C" not null,
  key_hash text collate "C" not null,
  fingerprint text collate "C" not null,
  request_id text collate "C" not null,
  expires_at timestamptz not null,
  constraint one_payment_per_key primary key (organization_id, key_hash)
);
create index paid_keys_by_expiry on paid_keys (expires_at);

-- Decides searches, each exactly once: the i-th elements of the arrays are one search. The first statement takes the
-- locks; the second sees a snapshot younger than them, so that known requests, versions and balances are exact. In one
-- statement the snapshot would be older than the wait for the lock, and versions would get gaps.
-- The plan is made once per connection: for a statement of this size, planning takes three times as long as running.
-- Returns one row per request: its deciding entry, whether this call made it, and the organization's newest pair.
create function settle(
  request_ids text[], organization_ids text[], wanted text[], prices bigint[], reasons text[],
  key_hashes text[], fingerprints text[]
) returns table (
  request_id text, organization_id text, kind text, amount_mils bigint, reason text, fresh boolean, reversed boolean,
  balance_mils bigint, version bigint
) language plpgsql set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  perform 1 from organizations o where o.id = any (organization_ids) order by o.id for no key update;
  return query
  with asked as (
    select distinct on (a.request_id) a.*
    from unnest(request_ids, organization_ids, wanted, prices, reasons, key_hashes, fingerprints) with ordinality
      as a (request_id, organization_id, wanted, price, reason, key_hash, fingerprint, place)
    order by a.request_id, a.place
  ), known as (
    select l.* from ledger_entries l where l.request_id = any (request_ids) and l.kind in ('charge', 'refund')
  ), open as (
    select a.*, o.balance_mils, o.version, p.fingerprint as paid_fingerprint,
      -- Of several searches under one key only the first can pay; the others follow it.
      a.key_hash is not null and a.wanted = 'charge' and row_number() over same_key > 1 as follows,
      first_value(a.fingerprint) over same_key as first_fingerprint
    from asked a
    join organizations o on o.id = a.organization_id
    left join paid_keys p on p.organization_id = a.organization_id and p.key_hash = a.key_hash and p.expires_at > now()
    where not exists (select 1 from known k where k.request_id = a.request_id)
    window same_key as (partition by a.organization_id, a.key_hash, a.wanted order by a.place)
  ), guarded as (
    select f.*, f.wanted = 'charge' and f.paid_fingerprint is null and not f.follows as pays,
      -- What is over the balance is refused together with all behind it: the sum never dips below zero.
      sum(case when f.wanted = 'charge' and f.paid_fingerprint is null and not f.follows then f.price else 0 end)
        over (partition by f.organization_id order by f.place) <= f.balance_mils as covered
    from open f
  ), led as (
    select g.*, first_value(g.covered) over (partition by g.organization_id, g.key_hash, g.wanted order by g.place) as first_covered
    from guarded g
  ), decided as (
    select g.*,
      case when g.pays and g.covered then 'charge' else 'refund' end as kind,
      case
        when g.wanted <> 'charge' then g.reason
        when g.pays then case when g.covered then null else 'out_of_credits' end
        when g.paid_fingerprint is null and not g.first_covered then 'out_of_credits'
        when coalesce(g.paid_fingerprint, g.first_fingerprint) = g.fingerprint then 'already_paid'
        else 'idempotency_key_reused'
      end as verdict
    from led g
  ), entries as (
    insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, reason)
    select d.organization_id, d.version + row_number() over in_order, d.kind,
      case d.kind when 'charge' then -d.price else 0 end,
      d.balance_mils - sum(case d.kind when 'charge' then d.price else 0 end) over in_order, d.request_id, d.verdict
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
    returning o.id, o.balance_mils, o.version
  )
  select r.request_id, r.organization_id, r.kind, r.amount_mils, r.reason, r.fresh,
    not r.fresh and exists (select 1 from ledger_entries b where b.request_id = r.request_id and b.kind = 'reversal'),
    coalesce(n.balance_mils, o.balance_mils), coalesce(n.version, o.version)
  from (
    select e.request_id, e.organization_id, e.kind, e.amount_mils, e.reason, true as fresh from entries e
    union all
    select k.request_id, k.organization_id, k.kind, k.amount_mils, k.reason, false from known k
  ) r
  join organizations o on o.id = r.organization_id
  left join pairs n on n.id = r.organization_id;
end $$;

-- Gives back charges that nobody received. Only those still in `undelivered` are reversed; taking that row away is what
-- makes it happen once. Returns the newest pair of every organization named.
create function reverse_charges(organization_ids text[], request_ids text[], why text) returns table (
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
    insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, reason)
    select o.id, o.version + row_number() over in_order, 'reversal', -l.amount_mils,
      o.balance_mils - sum(l.amount_mils) over in_order, l.request_id, why
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
  )
  select o.id, array(select e.request_id from entries e where e.organization_id = o.id),
    coalesce(n.balance_mils, o.balance_mils), coalesce(n.version, o.version)
  from organizations o left join pairs n on n.id = o.id
  where o.id = any (organization_ids);
end $$;

-- Adds credit once per grant id; a repeat returns the pair as it is, and the id of another organization's grant is refused
-- by its index. No row comes back for an unknown organization.
create function grant_credit(organization text, given_grant_id text, mils bigint, why text) returns table (
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
    update organizations o set balance_mils = e.balance_after_mils, version = e.version
    from entry e where o.id = e.organization_id
    returning o.balance_mils, o.version
  )
  select exists (select 1 from entry), coalesce(p.balance_mils, o.balance_mils), coalesce(p.version, o.version)
  from organizations o left join pair p on true
  where o.id = organization;
end $$;
