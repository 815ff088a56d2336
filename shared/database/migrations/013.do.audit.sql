-- What operators, accounts and Stripe did: an append-only trail beside the ledger, and the mark of an organization that was erased.

-- It has ids, numbers and terms, never the name of an organization or a token, a keyword, a token or its hash: entries stay
-- when an organization is erased. So it has no foreign keys either.
create table audit_entries (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  actor_kind text not null,
  -- Of an operator a name, of an account the token's id, of Stripe the event's id.
  actor text,
  -- Where the actor was: the host of a command, the address of a caller.
  origin text,
  action text not null,
  organization_id text collate "C",
  -- What it was done to, if that is not the organization: the id of a token, grant or search, the code of a plan, a provider.
  subject text,
  before jsonb,
  after jsonb,
  request_id text collate "C",
  constraint actor_kind_is_known check (actor_kind in ('operator', 'account', 'stripe')),
  constraint values_are_short check (length(before::text) < 10000 and length(after::text) < 10000)
);
create index audit_entries_by_organization on audit_entries (organization_id, id);
-- The list of clear_old_sign_ins().
create index audit_entries_of_accounts on audit_entries (at) where actor_kind = 'account';

-- Sign-ins and sign-outs have the addresses of people, and accounts cause them: they alone are deleted, after 90 days.
create function refuse_audit_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and tg_level = 'ROW' then
    if old.action in ('session.opened', 'session.closed') and old.at < now() - interval '90 days' then
      return old;
    end if;
  end if;
  raise exception 'the audit trail is append only: % is refused', lower(tg_op) using errcode = 'restrict_violation';
end $$;
create trigger audit_entries_are_append_only before update or truncate on audit_entries
  for each statement execute function refuse_audit_change();
create trigger audit_entries_stay before delete on audit_entries
  for each row execute function refuse_audit_change();

-- Deletes sign-ins and sign-outs that are older than 90 days, oldest first. Called as the owner, since processes may not delete.
create function clear_old_sign_ins(entries_max integer) returns bigint language sql security definer
set search_path = public, pg_temp as $$
  with cleared as (
    delete from audit_entries where id in (
      select id from audit_entries
      where actor_kind = 'account' and action in ('session.opened', 'session.closed') and at < now() - interval '90 days'
      order by at limit entries_max
      for update skip locked)
    returning 1
  )
  select count(*) from cleared
$$;

-- When an organization was erased. Its row stays, because the ledger refers to it.
alter table organizations add column erased_at timestamptz;

-- Erases an organization that is suspended and has no valid token: its name, its tokens' names and hashes, and the keys and answers that
-- callers could still repeat. The ledger and the audit trail stay. A repeat finds nothing more.
-- Returns `erased` with the credit that is left and whether this call did it; or `unknown`, `active` (not suspended, or
-- with a token), `open` (a charge waits for the confirmation of its delivery), without a change.
create function erase_organization(organization text) returns table (outcome text, fresh boolean, balance_mils bigint)
language plpgsql security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
declare
  known organizations;
begin
  -- No settlement of this organization runs from here on.
  select * into known from organizations o where o.id = organization for no key update;
  if known.id is null then
    return query select 'unknown', false, null::bigint;
  elsif known.suspended_at is null
    or exists (select from tokens t where t.organization_id = organization and t.revoked_at is null) then
    return query select 'active', false, null::bigint;
  elsif exists (select from undelivered u where u.organization_id = organization) then
    return query select 'open', false, null::bigint;
  else
    delete from answers a where a.slot in (0, 1, 2, 3) and a.organization_id = organization;
    delete from paid_keys p where p.organization_id = organization;
    -- No token has these hashes.
    update tokens t set hash = sha256(gen_random_uuid()::text::bytea), last4 = '', name = null
    where t.organization_id = organization;
    update organizations o set name = 'erased', erased_at = coalesce(o.erased_at, now()) where o.id = organization;
    return query select 'erased', known.erased_at is null, known.balance_mils;
  end if;
end $$;
