-- A limit is set in bounded time, however long the ledger is, and while its history is read no settlement waits for it.

-- What searches with a token cost, for each 4096 entries of an organization's ledger, once these are complete: entries never change.
-- Chunk 0 has the versions 1 to 4096. A token without costs in a chunk has no row.
create table token_sums (
  organization_id text collate "C" not null,
  token_id text collate "C" not null,
  chunk bigint not null,
  mils bigint not null,
  constraint one_sum_per_chunk primary key (organization_id, token_id, chunk)
);

-- Sums up the chunks of an organization's ledger from `first_chunk` to the one before `past_chunk`.
create function sum_chunks(organization text, first_chunk bigint, past_chunk bigint) returns void language sql
set enable_seqscan = off as $$
  insert into token_sums (organization_id, token_id, chunk, mils)
  select organization, l.token_id, (l.version - 1) / 4096, -sum(l.amount_mils)
  from ledger_entries l
  where l.organization_id = organization and l.version > first_chunk * 4096 and l.version <= past_chunk * 4096
    and l.kind in ('charge', 'reversal') and l.token_id is not null
  group by 2, 3
  on conflict on constraint one_sum_per_chunk do nothing
$$;

create function sum_complete_chunks() returns trigger language plpgsql as $$
begin
  perform sum_chunks(new.id, old.version / 4096, new.version / 4096);
  return null;
end $$;

-- token_spent(), from the sums of the chunks in between and the entries around them. Exact for chunks since the month in which
-- these sums were introduced: limits ask for no earlier ones.
create function token_spent_by_sums(organization text, token text, first_version bigint, last_version bigint)
returns bigint language plpgsql stable as $$
declare
  first_chunk constant bigint := (first_version + 4094) / 4096;
  past_chunk constant bigint := last_version / 4096;
begin
  if first_chunk >= past_chunk then
    return token_spent(organization, token, first_version, last_version);
  end if;
  return token_spent(organization, token, first_version, first_chunk * 4096)
    + (select coalesce(sum(s.mils), 0)::bigint from token_sums s
       where s.organization_id = organization and s.token_id = token and s.chunk >= first_chunk and s.chunk < past_chunk)
    + token_spent(organization, token, past_chunk * 4096 + 1, last_version);
end $$;

-- What was given back since a version for charges from before it, of one token (null: of all searches). It does not count.
create function given_back_late(organization text, token text, first_version bigint) returns bigint language sql stable as $$
  select coalesce(sum(r.mils), 0)::bigint from late_reversals r
  where r.organization_id = organization and r.version >= first_version and r.charge_version < first_version
    and (token is null or r.token_id = token)
$$;

-- Limit 1 makes Postgres look each entry up by its version. Otherwise it may read all of the organization's, where its statistics
-- are older than most of them.
create or replace function first_version_since(organization text, since timestamptz) returns bigint language sql stable
security definer set search_path = public, pg_temp as $$
  with recursive halves (low, high) as (
    select 1::bigint, o.version + 1 from organizations o where o.id = organization
    union all
    select case when m.created_at < since then m.version + 1 else h.low end,
           case when m.created_at < since then h.high else m.version end
    from halves h
    cross join lateral (select l.version, l.created_at from ledger_entries l
                        where l.organization_id = organization and l.version = (h.low + h.high) / 2 limit 1) m
    where h.low < h.high
  )
  select low from halves where low = high
$$;

-- Sets or removes (null) a token's limits. What it spent in this month is read before the organization is locked, and what came
-- meanwhile after it. Returns whether the token exists.
create or replace function limit_token(token text, new_day_limit_mils bigint, new_month_limit_mils bigint)
returns boolean language plpgsql security definer set search_path = public, pg_temp set enable_seqscan = off as $$
declare
  organization text;
  seen bigint;
  latest bigint;
  used_since timestamptz;
  first_of_day bigint;
  first_of_month bigint;
  spent_day bigint;
  spent_month bigint;
begin
  -- Searches with a token come after it, so a new one has no history. An entry is as old as its transaction, which may have
  -- waited for a lock while others went on: a minute is more than it may wait.
  select o.id, o.version, t.created_at - interval '1 minute' into organization, seen, used_since
  from tokens t join organizations o on o.id = t.organization_id where t.id = token;
  if not found then
    return false;
  end if;
  first_of_day := least(seen + 1,
    first_version_since(organization, greatest(used_since, utc_today()::timestamp at time zone 'UTC')));
  first_of_month := least(seen + 1,
    first_version_since(organization, greatest(used_since, month_of(utc_today())::timestamp at time zone 'UTC')));
  spent_day := token_spent_by_sums(organization, token, first_of_day, seen);
  spent_month := spent_day + token_spent_by_sums(organization, token, first_of_month, first_of_day - 1);
  select o.version into latest from organizations o where o.id = organization for no key update;
  perform refuse_another_day();
  update tokens t set day_limit_mils = new_day_limit_mils, month_limit_mils = new_month_limit_mils, spending_day = utc_today(),
    spent_day_mils = spent_day + late.mils + given_back_late(organization, token, first_of_day),
    spent_month_mils = spent_month + late.mils + given_back_late(organization, token, first_of_month)
  from (select token_spent_by_sums(organization, token, seen + 1, latest)) late (mils)
  where t.id = token;
  return true;
end $$;

-- Credit added and corrections made between two versions of an organization's ledger. Each kind by itself: for both together
-- Postgres may read all entries, where its statistics are older than most of them.
create function credit_added(organization text, first_version bigint, last_version bigint) returns bigint language sql stable as $$
  select coalesce((select sum(l.amount_mils) from ledger_entries l where l.organization_id = organization
      and l.kind = 'grant' and l.kind <> 'charge' and l.version between first_version and last_version), 0)::bigint
    + coalesce((select sum(l.amount_mils) from ledger_entries l where l.organization_id = organization
      and l.kind = 'correction' and l.kind <> 'charge' and l.version between first_version and last_version), 0)::bigint
$$;

create function balance_before(organization text, first_version bigint) returns bigint language sql stable as $$
  select coalesce((select l.balance_after_mils from ledger_entries l
                   where l.organization_id = organization and l.version = first_version - 1), 0)
$$;

-- Sets or removes (null) an organization's limits, likewise. Returns whether the organization exists.
create or replace function limit_organization(organization text, new_day_limit_mils bigint, new_month_limit_mils bigint)
returns boolean language plpgsql security definer set search_path = public, pg_temp set enable_seqscan = off as $$
declare
  seen bigint;
  latest bigint;
  first_of_day bigint;
  first_of_month bigint;
  day_began_with bigint;
  month_began_with bigint;
begin
  select o.version into seen from organizations o where o.id = organization;
  if not found then
    return false;
  end if;
  first_of_day := least(seen + 1, first_version_since(organization, utc_today()::timestamp at time zone 'UTC'));
  first_of_month := least(seen + 1, first_version_since(organization, month_of(utc_today())::timestamp at time zone 'UTC'));
  day_began_with := balance_before(organization, first_of_day) + credit_added(organization, first_of_day, seen);
  month_began_with := balance_before(organization, first_of_month) + credit_added(organization, first_of_month, seen);
  select o.version into latest from organizations o where o.id = organization for no key update;
  perform refuse_another_day();
  update organizations o set day_limit_mils = new_day_limit_mils, month_limit_mils = new_month_limit_mils, spending_day = utc_today(),
    day_began_with_mils = day_began_with + late.mils + given_back_late(organization, null, first_of_day),
    month_began_with_mils = month_began_with + late.mils + given_back_late(organization, null, first_of_month)
  from (select credit_added(organization, seen + 1, latest)) late (mils)
  where o.id = organization;
  return true;
end $$;

drop function began_with;

-- A settlement that completes a chunk sums it up: some milliseconds in one of 4096. Last, because it locks the organizations.
create trigger organizations_sum_tokens after update of version on organizations for each row
  when (old.version / 4096 < new.version / 4096) execute function sum_complete_chunks();
