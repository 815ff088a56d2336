-- What the processes may do, narrowed: they move money only by calling the ledger's functions, which run as their owner. Before,
-- the role `serpmill` could insert any entry and set any balance itself. Old processes call the same functions and go on.

-- These functions look up names in this schema, so only the owner may create anything in it. Since Postgres 15 that is the
-- default; a database that was upgraded from an older one still lets everyone create.
revoke create on schema public from public;

do $$
declare
  writer regprocedure;
begin
  for writer in
    select oid::regprocedure from pg_proc where pronamespace = 'public'::regnamespace
      and proname in ('settle', 'settle_with_answers', 'reverse_charges', 'grant_credit', 'topup', 'clear_old_answers')
  loop
    execute format('alter function %s security definer set search_path = public, pg_temp', writer);
    execute format('revoke execute on function %s from public', writer);
    execute format('grant execute on function %s to serpmill', writer);
  end loop;
end $$;
revoke execute on function refuse_change, answer_slot from public;

-- The tables that only the functions write. What stays: confirming a delivery deletes from `undelivered`, and keys are
-- deleted once their 24 hours are over.
do $$
declare
  written regclass;
begin
  for written in
    select oid::regclass from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
      and (relname in ('ledger_entries', 'undelivered', 'paid_keys') or relname ~ '^answers')
  loop
    execute format('revoke insert, update on %s from serpmill', written);
  end loop;
end $$;

alter table paid_keys enable row level security;
create policy keys_are_read on paid_keys for select to serpmill using (true);
create policy expired_keys_are_deleted on paid_keys for delete to serpmill using (expires_at < now());

-- The operator's commands, column by column: never a balance, a version, or the hash and owner of a token that exists.
revoke insert, update on organizations, tokens, plans from serpmill;
grant insert (id, name, plan_code), update (plan_code, suspended_at) on organizations to serpmill;
grant insert (id, organization_id, hash, last4, expires_at), update (last_used_at, revoked_at) on tokens to serpmill;
grant
  insert (code, price_mils, window_limit, window_seconds, concurrency, operations),
  update (price_mils, window_limit, window_seconds, concurrency, operations)
on plans to serpmill;

-- An owner that is no superuser and made the role `serpmill` itself is its member without being allowed to switch to it
-- (since Postgres 16). With one DATABASE_URL for everything, the processes have to.
do $$
begin
  set local role serpmill;
  reset role;
exception when insufficient_privilege then
  execute format('grant serpmill to %I', current_user);
end $$;
