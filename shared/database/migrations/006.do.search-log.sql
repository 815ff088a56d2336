-- What was searched, for the people who pay: a row for each search beside the ledger, for as many days as the operator keeps them.

-- The ledger decides what a search cost. A row that is missing changes nothing: the search is then shown without its keyword.
create table search_log (
  -- The time in the request id, so that each process that writes about a search finds the same row and its day.
  at timestamptz not null,
  request_id text collate "C" not null,
  organization_id text collate "C" not null,
  token_id text collate "C" not null,
  -- The hash of the Idempotency-Key. The answer is found by it while it is stored.
  key_hash text collate "C",
  keyword text not null,
  location text not null,
  language text not null,
  device text not null,
  depth integer not null,
  target_domain text,
  types text[],
  format text,
  duration_ms integer not null,
  -- These three come from the worker: null if the API ended the search before a worker had it.
  source text,
  provider text,
  calls jsonb,
  constraint one_row_per_search primary key (organization_id, at, request_id)
) partition by range (at);

-- For rows of a day without a partition: no batch fails because a partition is missing, or because the clock of a machine is wrong.
create table search_log_rest partition of search_log default;

-- Searches that were refused before they ran: no ledger entry and no refund has them. The caller decides how many there are, so a
-- process writes at most ten rows a minute for an organization, and one that counts the others.
create table refused_searches (
  -- The time in the request id.
  at timestamptz not null,
  request_id text collate "C" not null,
  organization_id text collate "C" not null,
  token_id text collate "C" not null,
  code text not null,
  reason text,
  -- What the caller was told, without tokens.
  message text not null,
  -- The valid fields of the query; null in a row that counts.
  query jsonb,
  -- 1, or how many were refused of which this row has the last one.
  refusals integer not null,
  primary key (organization_id, at, request_id)
);

-- Finds a request id of an unknown organization, and old rows.
create index refused_searches_by_time on refused_searches (at);

-- Makes the partitions of a table by days, of today and of the next seven days, and drops those whose rows are older than so many
-- days. With 0 days it makes none and removes all rows. It runs as the owner, since processes may not create and drop tables. It does
-- not wait for readers and writers: the next call, seconds later, tries again. Returns how many partitions it dropped.
create function rotate_days(of_table text, days integer) returns integer language plpgsql security definer
set search_path = public, pg_temp set lock_timeout = '100ms' as $$
declare
  today date := utc_today();
  kept_since timestamptz := (today - days)::timestamp at time zone 'UTC';
  day date;
  begins timestamptz;
  ends timestamptz;
  name text;
  dropped integer := 0;
begin
  if days not between 0 and 400 or of_table not in ('search_log', 'kept_answers') then
    raise exception 'the search log and answers are kept for 0 to 400 days' using errcode = 'invalid_parameter_value';
  end if;
  for ahead in 0..7 loop
    exit when days = 0;
    day := today + ahead;
    name := of_table || '_' || to_char(day, 'YYYYMMDD');
    continue when to_regclass(name) is not null;
    begins := day::timestamp at time zone 'UTC';
    ends := (day + 1)::timestamp at time zone 'UTC';
    -- Nothing is written to the rest between the move and the end of this transaction.
    execute format('lock table %s_rest in access exclusive mode', of_table);
    execute format('create table %I (like %s including all)', name, of_table);
    execute format('with moved as (delete from %s_rest where at >= %L and at < %L returning *)
                    insert into %I select * from moved', of_table, begins, ends, name);
    execute format('alter table %s attach partition %I for values from (%L) to (%L)', of_table, name, begins, ends);
  end loop;
  for name in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = of_table::regclass and c.relname ~ (of_table || '_\d{8}$')
      and (days = 0 or to_date(right(c.relname, 8), 'YYYYMMDD') < today - days)
  loop
    execute format('drop table %I', name);
    dropped := dropped + 1;
  end loop;
  execute format('delete from %s_rest where $1 = 0 or at < $2', of_table) using days, kept_since;
  return dropped;
exception when lock_not_available then
  return 0;
end $$;
