-- Erasure of an organization: its names, tokens, answers and searches. The ledger and the audit trail stay.

-- Begins to erase an organization that is suspended and has no valid token: removes its name and marks it as erased. Its rows follow
-- with erase_page(). A repeat changes nothing.
-- Returns `erased` with the credit that is left and whether this call did it; or `unknown`, `active` (not suspended, or
-- with a token), `open` (a charge waits for the confirmation of its delivery), without a change.
create function begin_erasure(organization text) returns table (outcome text, fresh boolean, balance_mils bigint)
language plpgsql security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
declare
  known organizations;
begin
  -- No settlement of this organization runs meanwhile, and none charges it afterwards.
  select * into known from organizations o where o.id = organization for no key update;
  if known.id is null then
    return query select 'unknown', false, null::bigint;
  elsif known.suspended_at is null
    or exists (select from tokens t where t.organization_id = organization and t.revoked_at is null) then
    return query select 'active', false, null::bigint;
  elsif exists (select from undelivered u where u.organization_id = organization) then
    return query select 'open', false, null::bigint;
  else
    update organizations o set name = 'erased', kept_answer_days = 0, erased_at = coalesce(o.erased_at, now()) where o.id = organization;
    return query select 'erased', known.erased_at is null, known.balance_mils;
  end if;
end $$;

-- Erases one page of an organization whose erasure has begun: so many of its `tokens` (names and hashes), of its answers in one slot
-- (`answers_0` to `answers_3`), of its `kept_answers`, or of its rows in `search_log` or `refused_searches`, from the place `since` in
-- their order (null: the first). Millions of rows in one statement would take longer than a statement may. Returns how many rows it
-- erased, and the place from which the next page goes on, null after the last one. Without that place, each page would pass the
-- remains of all pages before it.
create function erase_page(organization text, what text, since text, rows_max integer) returns table (erased bigint, next text)
language plpgsql security definer set search_path = public, pg_temp
set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  rows constant text := case when what in ('search_log', 'refused_searches', 'kept_answers') then what || ' r where true'
    else format('answers r where r.slot = %s', right(what, 1)) end;
  place constant text := case when what like 'answers%' then 'key_hash' else 'at' end;
  kind constant text := case when what like 'answers%' then 'text' else 'timestamptz' end;
begin
  if not exists (select from organizations o where o.id = organization and o.erased_at is not null) then
    raise exception 'the organization was not erased';
  end if;
  -- An answer that is being kept at this moment is waited for. From then on none is.
  if what = 'kept_answers' then
    perform lock_kept_answers(organization);
    delete from kept_answer_bytes d where d.organization_id = organization;
  end if;
  if what = 'tokens' then
    -- These hashes are those of no token.
    update tokens t set hash = sha256(gen_random_uuid()::text::bytea), last4 = '', name = null
    where t.id in (select r.id from tokens r where r.organization_id = organization and r.last4 <> '' limit rows_max);
    get diagnostics erased = row_count;
    next := case when erased = rows_max then '' end;
  else
    execute format('select r.%1$s::text from %2$s and r.organization_id = $1 and ($2 is null or r.%1$s >= $2::%3$s)
      order by r.%1$s offset $3 - 1 limit 1', place, rows, kind) into next using organization, since, rows_max;
    execute format('delete from %2$s and r.organization_id = $1 and ($2 is null or r.%1$s >= $2::%3$s)
      and ($3 is null or r.%1$s <= $3::%3$s)', place, rows, kind) using organization, since, next;
    get diagnostics erased = row_count;
  end if;
  return next;
end $$;
