-- What operators, accounts and Stripe did: an append-only trail beside the ledger.

-- Entries have ids, numbers, terms and where the actor was, never the name of an organization or a token, a keyword, a token or its
-- hash: they stay when an organization is erased. So there are no foreign keys either.
create table audit_entries (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  -- The actor of an automatic payment that failed is the `service`: neither a person nor an event of Stripe caused it.
  actor_kind text not null,
  -- The name of an operator, the id of an account's token, or the id of Stripe's event.
  actor text,
  -- Where the actor was: the host of a command, the address of a caller.
  origin text,
  action text not null,
  organization_id text collate "C",
  -- The object of the action, unless it is the organization: the id of a token, grant or search, the code of a plan, a provider.
  subject text,
  before jsonb,
  after jsonb,
  request_id text collate "C",
  constraint actor_kind_is_known check (actor_kind in ('operator', 'account', 'stripe', 'service')),
  constraint values_are_short check (length(before::text) < 10000 and length(after::text) < 10000)
);
create index audit_entries_by_organization on audit_entries (organization_id, id);
-- For `audit list --since`. Entries of one time lie together, so this index is tiny and new entries write nothing to it.
create index audit_entries_by_time on audit_entries using brin (at);
-- clear_old_sign_ins() reads this index.
create index audit_entries_of_sessions on audit_entries (at)
  where actor_kind = 'account' and action in ('session.opened', 'session.closed');
-- The changes of an account in a day are bounded. This index counts them, however many sign-ins are among them.
create index audit_entries_of_changes on audit_entries (organization_id, at)
  where actor_kind = 'account' and action not in ('session.opened', 'session.closed');

create trigger audit_entries_are_append_only before update or truncate on audit_entries
  for each statement execute function refuse_change('the audit trail is');
-- Only sign-ins and sign-outs are deleted, after 90 days: they have the addresses of people, and changed nothing.
create trigger audit_entries_stay before delete on audit_entries for each row
  when (old.action not in ('session.opened', 'session.closed') or old.at >= now() - interval '2160 hours')
  execute function refuse_change('the audit trail is');

-- Deletes sign-ins and sign-outs that are older than 90 days, oldest first. It runs as the owner, since processes may not delete. With
-- `in` instead of the array, Postgres before 18 would expect a tenth of all old entries, whatever the limit is, and read the whole trail.
create function clear_old_sign_ins(entries_max integer) returns bigint language sql security definer
set search_path = public, pg_temp as $$
  with cleared as (
    delete from audit_entries where id = any (array(
      select id from audit_entries
      where actor_kind = 'account' and action in ('session.opened', 'session.closed') and at < now() - interval '2160 hours'
      order by at limit entries_max
      for update skip locked))
    returning 1
  )
  select count(*) from cleared
$$;
