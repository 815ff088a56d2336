-- Answers that an organization wants kept for days: what its searches found, to be read again while their charges stand.

-- Apart from `answers`, which owes a key its bytes and is written with the charge, in a ring of days. These are a convenience: written
-- in the background, bounded in bytes, for as many days as the payer chose, and with all results, so that they serve any format.
create table kept_answers (
  -- The time in the request id.
  at timestamptz not null,
  request_id text collate "C" not null,
  organization_id text collate "C" not null,
  -- Of what the engine searched: the query without what only filters and shapes its answer.
  fingerprint text collate "C" not null,
  -- When the provider answered, by the clock of Redis.
  fetched_at timestamptz not null,
  provider text not null,
  -- Zstandard, from the worker.
  body bytea not null,
  constraint one_kept_answer_per_search primary key (organization_id, at, request_id)
) partition by range (at);
alter table kept_answers alter column body set storage external;
create index kept_answers_by_query on kept_answers (organization_id, fingerprint, fetched_at);

-- For rows of a day without a partition, as in the search log.
create table kept_answers_rest partition of kept_answers default;

-- The bytes that an organization keeps of each UTC day. A row counts with 500 bytes for itself and its indexes.
create table kept_answer_bytes (
  organization_id text collate "C" not null,
  day date not null,
  bytes bigint not null,
  constraint one_count_of_kept_bytes_per_day primary key (organization_id, day)
);

-- Whether a search is charged finally: delivered, or under a key. Its charge can then never be reversed, so what this allows once it
-- allows for ever, and no refund can run beside a reader. Before the delivery is confirmed the charge may still be reversed.
create function charge_stands(organization text, request text) returns boolean language sql stable
security definer set search_path = public, pg_temp set enable_seqscan = off as $$
  select exists (select from ledger_entries l where l.request_id = request and l.kind = 'charge' and l.organization_id = organization)
    and not exists (select from undelivered u where u.request_id = request)
    and not exists (select from ledger_entries l where l.request_id = request and l.kind = 'reversal')
$$;

-- What processes may read: an answer whose charge does not stand would be free.
create view readable_answers as
select k.* from kept_answers k join organizations o on o.id = k.organization_id
where k.at >= now() - make_interval(hours => 24 * o.kept_answer_days) and charge_stands(k.organization_id, k.request_id);

-- The newest answer that an organization may read to each of these queries, no older than given: the i-th elements belong together.
-- Of each query it looks at the ten newest answers, however many there are whose charges do not stand.
create function find_kept_answers(organization_ids text[], fingerprints text[], since timestamptz[])
returns table (place bigint, request_id text, fetched_at timestamptz, provider text, body bytea)
language sql stable security definer set search_path = public, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
  select a.place, k.request_id, k.fetched_at, k.provider, k.body
  from unnest(organization_ids, fingerprints, since) with ordinality as a (organization_id, fingerprint, since, place)
  cross join lateral (
    select n.* from (
      -- An answer arrives minutes after its request at most. The age of one of
      -- later than now is unknown: the clock of Redis was set back.
      select k.* from kept_answers k join organizations o on o.id = k.organization_id
      where k.organization_id = a.organization_id and k.fingerprint = a.fingerprint and k.fetched_at >= a.since
        and k.fetched_at < now() + interval '5 minutes'
        and k.at >= greatest(a.since - interval '5 minutes', now() - make_interval(hours => 24 * o.kept_answer_days))
      order by k.fetched_at desc limit 10) n
    where charge_stands(n.organization_id, n.request_id)
    order by n.fetched_at desc limit 1) k
$$;

-- Deletes the oldest answers of an organization and a day, at most so many, with their bytes from the count. Returns how many.
create function drop_kept_answers(organization text, of_day date, rows_max integer) returns bigint language plpgsql
set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  dropped bigint;
  freed bigint;
begin
  with gone as (
    delete from kept_answers k
    where k.organization_id = organization and (k.at, k.request_id) in (
      select k.at, k.request_id from kept_answers k
      where k.organization_id = organization and k.at >= of_day::timestamp at time zone 'UTC'
        and k.at < (of_day + 1)::timestamp at time zone 'UTC'
      order by k.at, k.request_id limit rows_max)
    returning length(k.body) + 500 as bytes
  ) select count(*), coalesce(sum(bytes), 0) into dropped, freed from gone;
  update kept_answer_bytes d set bytes = d.bytes - freed where d.organization_id = organization and d.day = of_day;
  if dropped < rows_max then
    delete from kept_answer_bytes d where d.organization_id = organization and d.day = of_day;
  end if;
  return dropped;
end $$;

-- One transaction at a time writes or deletes the kept answers of an organization.
create function lock_kept_answers(organization text) returns void language sql as $$
  select pg_advisory_xact_lock(hashtextextended(organization, 14))
$$;

-- Keeps answers: the i-th elements of the arrays are one. Of an organization that keeps none, or is erased, it keeps none. Where there
-- would be more bytes than the organization may keep, its oldest answers give way. Keeping an answer twice changes nothing. Returns
-- how many it kept.
create function keep_answers(
  bytes_max bigint, ats timestamptz[], request_ids text[], organization_ids text[], fingerprints text[], fetched_ats timestamptz[],
  providers text[], bodies bytea[]
) returns bigint language plpgsql security definer set search_path = public, pg_temp as $$
declare
  owner text;
  incoming bigint;
  kept bigint := 0;
  added bigint;
begin
  for owner, incoming in
    select a.organization_id, sum(length(a.body) + 500) from unnest(organization_ids, bodies) a (organization_id, body)
    group by 1 order by 1
  loop
    perform lock_kept_answers(owner);
    continue when not exists (select from organizations o where o.id = owner and o.kept_answer_days > 0 and o.erased_at is null);
    for page in 1..10 loop
      exit when incoming + (select coalesce(sum(d.bytes), 0) from kept_answer_bytes d where d.organization_id = owner) <= bytes_max;
      perform drop_kept_answers(owner, min(d.day), 500) from kept_answer_bytes d where d.organization_id = owner having count(*) > 0;
    end loop;
    continue when incoming + (select coalesce(sum(d.bytes), 0) from kept_answer_bytes d where d.organization_id = owner) > bytes_max;
    with written as (
      insert into kept_answers as k (at, request_id, organization_id, fingerprint, fetched_at, provider, body)
      select a.* from unnest(ats, request_ids, organization_ids, fingerprints, fetched_ats, providers, bodies)
        as a (at, request_id, organization_id, fingerprint, fetched_at, provider, body)
      where a.organization_id = owner
      on conflict on constraint one_kept_answer_per_search do nothing
      returning (k.at at time zone 'UTC')::date as day, length(k.body) + 500 as bytes
    ), counted as (
      insert into kept_answer_bytes as d (organization_id, day, bytes) select owner, w.day, sum(w.bytes) from written w group by w.day
      on conflict on constraint one_count_of_kept_bytes_per_day do update set bytes = d.bytes + excluded.bytes
    ) select count(*) into added from written;
    kept := kept + added;
  end loop;
  return kept;
end $$;

-- Looks at a page of the counts, from those of the organization `since` on, and deletes the answers that are older than their organization
-- or the operator keeps them, until it has deleted `rows_max`. An organization has far fewer counts than a page. Returns the organization
-- from which the next page goes on, null after the last one: all counts of a large installation take longer than a statement may.
create function clear_kept_answers(days_max integer, since text, counts_max integer, rows_max integer) returns text
language plpgsql security definer set search_path = public, pg_temp set enable_seqscan = off as $$
declare
  following text;
  old record;
  deleted bigint := 0;
  days_left integer := 1000; -- Each holds a lock until the end of the call.
begin
  select d.organization_id into following from kept_answer_bytes d where d.organization_id >= since
  order by d.organization_id, d.day offset counts_max limit 1;
  for old in
    select d.organization_id, d.day from kept_answer_bytes d join organizations o on o.id = d.organization_id
    where d.organization_id >= since and (following is null or d.organization_id < following)
      and (least(o.kept_answer_days, days_max) = 0 or d.day < utc_today() - least(o.kept_answer_days, days_max))
    order by d.organization_id, d.day
  loop
    if deleted >= rows_max or days_left = 0 then
      return old.organization_id;
    end if;
    days_left := days_left - 1;
    perform lock_kept_answers(old.organization_id);
    deleted := deleted + drop_kept_answers(old.organization_id, old.day, rows_max);
  end loop;
  return following;
end $$;

-- The last search before this one whose answer to its query can be read, of any token or of one, so that a person can compare. An
-- answer that the organization keeps is found among the 1,000 newest of the query. One under a key needs the same domain, types and
-- format too, because it is shown as its caller got it, and is found among 10,000 rows of the log of the last 25 hours: older keys
-- have expired. `key_hash` is null for the first kind. A row of the log says which token searched.
create function previous_answer(organization text, asked_at timestamptz, of_request text, of_fingerprint text, only_token text)
returns table (request_id text, key_hash text)
language sql stable security definer set search_path = public, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
  (select a.request_id, a.key_hash from (
    (select n.at, n.request_id, null as key_hash from (
      select k.at, k.request_id, k.fetched_at from kept_answers k join organizations o on o.id = k.organization_id
      where k.organization_id = organization and k.fingerprint = of_fingerprint and k.fetched_at < asked_at
        and k.at < asked_at and k.at >= now() - make_interval(hours => 24 * o.kept_answer_days)
      order by k.fetched_at desc limit 1000) n
    -- `case` asks the ledger last: that costs most.
    where case when only_token is null or exists (
      select from search_log l
      where l.organization_id = organization and l.at = n.at and l.request_id = n.request_id and l.token_id = only_token
    ) then charge_stands(organization, n.request_id) end
    order by n.fetched_at desc limit 1)
    union all
    (select l.at, l.request_id, l.key_hash from search_log s
    cross join lateral (
      select * from search_log l
      where l.organization_id = organization and l.at <= asked_at and (l.at, l.request_id) < (asked_at, of_request)
        and l.at >= now() - interval '25 hours'
      order by l.at desc, l.request_id desc limit 10000) l
    where s.organization_id = organization and s.at = asked_at and s.request_id = of_request
      and (l.keyword, l.location, l.language, l.device, l.depth) = (s.keyword, s.location, s.language, s.device, s.depth)
      and (l.target_domain, l.types, l.format) is not distinct from (s.target_domain, s.types, s.format)
      and (only_token is null or l.token_id = only_token)
      and exists (
        select from key_payments p
        where p.organization_id = organization and p.key_hash = l.key_hash and p.request_id = l.request_id and p.expires_at > now())
    order by l.at desc, l.request_id desc limit 1)) a
  order by a.at desc, a.request_id desc limit 1)
$$;
