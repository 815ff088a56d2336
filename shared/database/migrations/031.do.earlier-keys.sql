-- The keys that paid before 029 expire within a day and are then removed at once. Processes of the last release read the others as well.

drop policy if exists keys_are_read on paid_keys;
drop policy if exists expired_keys_are_deleted on paid_keys;
alter table paid_keys disable row level security;
alter table paid_keys rename to earlier_paid_keys;

create view paid_keys as select organization_id, key_hash, fingerprint, request_id, expires_at from key_payments;
-- Their maintenance deletes expired keys.
create rule keys_are_not_deleted as on delete to paid_keys do instead nothing;

-- Empties the table of the day before yesterday: no answer in it is retrievable any more, and no key in it counts. Tomorrow's is left
-- alone, because a transaction that begins at midnight may write to it by now. Called as the owner, since processes may not truncate.
-- It waits for readers no longer than searches may wait behind it: the next call, seconds later, tries again.
create or replace function clear_old_answers() returns boolean language plpgsql security definer
set search_path = public, pg_temp set lock_timeout = '100ms' as $$
declare
  old text := 'answers_' || answer_slot(now() - interval '2 days');
  has_rows boolean;
begin
  if exists (select from earlier_paid_keys) and not exists (select from earlier_paid_keys where expires_at > now()) then
    truncate earlier_paid_keys;
  end if;
  execute format('select exists (select from %I)', old) into has_rows;
  if not has_rows then
    return false;
  end if;
  execute format('truncate %I', old);
  return true;
exception when lock_not_available then
  return false;
end $$;
