-- Answers that were paid under an Idempotency-Key, retrievable for 24 hours whatever Redis loses.

-- The slot of an answer: the UTC day of its charge, in a ring of four. The ring needs no statement that makes or drops a
-- table while the service runs, so settling never fails for lack of one.
create function answer_slot(charged_at timestamptz) returns smallint language sql stable as $$
  select (floor(extract(epoch from charged_at) / 86400)::bigint % 4)::smallint
$$;

-- The body is compressed by the worker. A row counts as long as its key in paid_keys does.
create table answers (
  slot smallint not null,
  organization_id text collate "C" not null,
  key_hash text collate "C" not null,
  request_id text collate "C" not null,
  body bytea not null,
  constraint one_answer_per_key primary key (slot, organization_id, key_hash)
) partition by list (slot);
alter table answers alter column body set storage external;

create table answers_0 partition of answers for values in (0);
create table answers_1 partition of answers for values in (1);
create table answers_2 partition of answers for values in (2);
create table answers_3 partition of answers for values in (3);

-- settle(), which stays what decides, with the answers of searches under keys. The answer of a charge is stored in the
-- transaction of the charge. For a search that was charged before, or whose key had paid, the stored answer comes back,
-- with the request that paid for it: of all answers under a key only the first one counts.
-- The locks are taken before the second statement, as in settle(), so that it sees every payment under these keys.
create function settle_with_answers(
  request_ids text[], organization_ids text[], wanted text[], prices bigint[], reasons text[],
  key_hashes text[], fingerprints text[], bodies bytea[]
) returns table (
  request_id text, organization_id text, kind text, amount_mils bigint, reason text, fresh boolean, reversed boolean,
  balance_mils bigint, version bigint, answer_of text, answer bytea
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
    from settle(request_ids, organization_ids, wanted, prices, reasons, key_hashes, fingerprints) d
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
    coalesce(n.request_id, e.request_id), coalesce(n.body, e.body)
  from decided d
  -- Paid by this very call, or by an earlier one.
  left join stored n on n.organization_id = d.organization_id and n.key_hash = d.key_hash and d.reason = 'already_paid'
  left join paid_keys p on p.organization_id = d.organization_id and p.key_hash = d.key_hash
    and p.fingerprint = d.fingerprint and p.expires_at > now()
    and (d.reason = 'already_paid' or d.kind = 'charge' and not d.fresh and p.request_id = d.request_id)
  left join answers e on e.slot = answer_slot(p.expires_at - interval '24 hours')
    and e.organization_id = p.organization_id and e.key_hash = p.key_hash;
end $$;

-- Empties the table of the day before yesterday: no answer in it is retrievable any more. Tomorrow's is left alone, because
-- a transaction that begins at midnight may write to it by now. Called as the owner, since processes may not truncate. It
-- does not wait for readers: the next call, seconds later, tries again.
create function clear_old_answers() returns boolean language plpgsql security definer
set search_path = public, pg_temp set lock_timeout = '100ms' as $$
declare
  old text := 'answers_' || answer_slot(now() - interval '2 days');
  has_rows boolean;
begin
  execute format('select exists (select from %I)', old) into has_rows;
  if not has_rows then
    return false;
  end if;
  execute format('truncate %I', old);
  return true;
exception when lock_not_available then
  return false;
end $$;

revoke execute on function clear_old_answers from public;
grant select, insert, update on answers to serpmill;
grant execute on function answer_slot, settle_with_answers, clear_old_answers to serpmill;
