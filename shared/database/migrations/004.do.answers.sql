-- Answers that were paid under an Idempotency-Key, owed for 24 hours whatever Redis loses, with the payments of the keys.

-- The slot of an answer: the UTC day of its charge, in a ring of four. The ring needs no statement that creates or drops a
-- table while the service runs, so no settlement fails for lack of one.
create function answer_slot(charged_at timestamptz) returns smallint language sql stable as $$
  select (floor(extract(epoch from charged_at) / 86400)::bigint % 4)::smallint
$$;

-- A key pays once in 24 hours, and the row of its answer is that payment. So keys go with their day, which is truncated as a whole:
-- deleting them one by one did not keep up with 1,000 searches a second, and left as many dead rows to the vacuum.
create table answers (
  slot smallint not null,
  organization_id text collate "C" not null,
  key_hash text collate "C" not null,
  -- The search that paid, and the fingerprint of its query.
  request_id text collate "C" not null,
  fingerprint text collate "C" not null,
  -- Zstandard, from the worker.
  body bytea not null,
  expires_at timestamptz not null,
  constraint one_answer_per_key primary key (slot, organization_id, key_hash)
) partition by list (slot);
alter table answers alter column body set storage external;

-- An answer of the usual size stays in its row. Compressed it has about 2,000 bytes, just enough for Postgres to move it out of line
-- by default: two rows of the TOAST table and two entries of its index more for each search under a key. The bound lets two rows
-- fit into a page of 8 kB.
create table answers_0 partition of answers for values in (0) with (toast_tuple_target = 4064);
create table answers_1 partition of answers for values in (1) with (toast_tuple_target = 4064);
create table answers_2 partition of answers for values in (2) with (toast_tuple_target = 4064);
create table answers_3 partition of answers for values in (3) with (toast_tuple_target = 4064);

-- The keys that have paid in this and the last day, some of them expired. now() is when a transaction began: one that began before
-- midnight may have waited for one that began after it, and has to see its payment. A minute is more than it may wait.
-- A slot is a day of UTC, which has 24 hours. '1 day' has 23 or 25 where the clock of the session's time zone changes.
create view key_payments as
select organization_id, key_hash, fingerprint, request_id, expires_at, slot
from answers
where slot in (answer_slot(now()), answer_slot(now() - interval '24 hours'), answer_slot(now() + interval '1 minute'));

-- Empties the tables of other days than this and the last one: each answer and each payment in them has expired. That is the table of
-- the day before yesterday, and, if nothing emptied it then, that of a day earlier, which is the table of tomorrow: it is left alone
-- in the hour before midnight, because a transaction that begins at midnight writes to it. It runs as the owner, since processes may
-- not truncate. It waits for readers no longer than searches may wait behind it: the next call, seconds later, tries again.
-- Returns whether there was a table to empty.
create function clear_old_answers() returns boolean language plpgsql security definer
set search_path = public, pg_temp set lock_timeout = '100ms' as $$
declare
  old smallint;
  has_rows boolean;
  cleared boolean := false;
begin
  for old in
    select s from generate_series(0, 3) s
    where s not in (answer_slot(now()), answer_slot(now() - interval '24 hours'), answer_slot(now() + interval '1 hour'))
  loop
    execute format('select exists (select from answers_%s)', old) into has_rows;
    if has_rows then
      execute format('truncate answers_%s', old);
      cleared := true;
    end if;
  end loop;
  return cleared;
exception when lock_not_available then
  return false;
end $$;
