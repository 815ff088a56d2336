-- Spending limits of organizations and tokens: how a day's count begins, what is spent and left, and how a limit is set.

create function utc_today() returns date language sql stable as $$ select (now() at time zone 'UTC')::date $$;

-- Postgres inlines an immutable function if all that it uses is immutable: `date_trunc` of a timestamp without time zone, and `||` of
-- texts. As calls, this one and spending_text() took a third of a settlement's time.
create function month_of(day date) returns date language sql immutable as $$ select date_trunc('month', day::timestamp)::date $$;

-- The first change of a balance on a new day begins the count of that day: with the balance before it, and the credit that it adds.
create function begin_spending_day() returns trigger language plpgsql as $$
begin
  new.day_began_with_mils := old.balance_mils + new.day_began_with_mils - old.day_began_with_mils;
  if month_of(old.spending_day) < month_of(utc_today()) then
    new.month_began_with_mils := old.balance_mils + new.month_began_with_mils - old.month_began_with_mils;
  end if;
  new.spending_day := utc_today();
  return new;
end $$;

create trigger organizations_begin_spending_day before update of balance_mils on organizations for each row
  when (old.spending_day < utc_today()) execute function begin_spending_day();

-- The same for the count of a token.
create function begin_token_spending_day() returns trigger language plpgsql as $$
begin
  new.spent_day_mils := new.spent_day_mils - old.spent_day_mils;
  if month_of(old.spending_day) < month_of(utc_today()) then
    new.spent_month_mils := new.spent_month_mils - old.spent_month_mils;
  end if;
  new.spending_day := utc_today();
  return new;
end $$;

create trigger tokens_begin_spending_day before update of spent_day_mils on tokens for each row
  when (old.spending_day = new.spending_day and old.spending_day < utc_today()) execute function begin_token_spending_day();

-- What each organization spent by now in this day and this month. A count of an earlier day or month is 0 by now. Spending is null
-- before the first limit.
create view organization_spending as
select o.id as organization_id, o.balance_mils, o.version, d.day, s.spent_day_mils, s.spent_month_mils,
  o.day_limit_mils, o.month_limit_mils, o.erased_at
from organizations o
cross join lateral (select greatest(o.spending_day, utc_today()) as day) d
cross join lateral (
  select case when o.spending_day = d.day then o.day_began_with_mils - o.balance_mils when o.spending_day is not null then 0 end,
    case when month_of(o.spending_day) = month_of(d.day) then o.month_began_with_mils - o.balance_mils
      when o.spending_day is not null then 0 end
) s (spent_day_mils, spent_month_mils);

-- The same for each token that has had a limit.
create view token_spending as
select t.id as token_id, t.organization_id, d.day, s.spent_day_mils, s.spent_month_mils, t.day_limit_mils, t.month_limit_mils
from tokens t
cross join lateral (select greatest(t.spending_day, utc_today()) as day) d
cross join lateral (
  select case when t.spending_day = d.day then t.spent_day_mils else 0 end,
    case when month_of(t.spending_day) = month_of(d.day) then t.spent_month_mils else 0 end
) s (spent_day_mils, spent_month_mils)
where t.spending_day is not null;

-- The spending that Redis keeps beside a balance: the day as days since 1970, the mils of that day and of its month, and the
-- day on which the next month begins.
create function spending_text(day date, spent_day_mils bigint, spent_month_mils bigint) returns text language sql immutable as $$
  select (day - date '1970-01-01')::text || ':' || spent_day_mils::text || ':' || spent_month_mils::text || ':'
    || ((month_of(day) + interval '1 month')::date - date '1970-01-01')::text
$$;

-- The version of an organization's first entry since this time, or the version that comes next. An entry is as old as its transaction,
-- which may have waited for a lock: then it comes after younger ones, and counts with them. So no entry that comes later changes the
-- version, and days, months, statements and limits keep theirs. No transaction waits for a minute. So a binary search by version finds a
-- place before the entry, and only a minute of entries is read from there. `limit 1` and the settings make Postgres look entries up
-- by their versions. Otherwise it may read all entries of the organization, where its statistics are older than most of them.
create function first_version_since(organization text, since timestamptz) returns bigint language sql stable
security definer set search_path = public, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
  with recursive halves (low, high, next) as (
    select 1::bigint, o.version + 1, o.version + 1 from organizations o where o.id = organization
    union all
    select case when m.is_earlier then m.version + 1 else h.low end, case when m.is_earlier then h.high else m.version end, h.next
    from halves h
    cross join lateral (select l.version, l.created_at < since - interval '1 minute' as is_earlier from ledger_entries l
                        where l.organization_id = organization and l.version = (h.low + h.high) / 2 limit 1) m
    where h.low < h.high
  )
  select coalesce((select l.version from ledger_entries l
                   where l.organization_id = organization and l.version >= h.low and l.created_at >= since
                   order by l.version limit 1), h.next)
  from halves h where h.low = h.high
$$;

-- Whether the count that began on this day contains the charge, by the order of the ledger. `first_of_today` is the version of the
-- first entry of today, which the caller reads once for many charges.
create function is_counted_since(organization text, day date, charge_version bigint, charged_at timestamptz, first_of_today bigint)
returns boolean language sql stable as $$
  select charged_at >= day::timestamp at time zone 'UTC' or charge_version >= case when day = utc_today() then first_of_today
    else first_version_since(organization, day::timestamp at time zone 'UTC') end
$$;

-- Reversals on a later day than their charges: within minutes of midnight, or after an outage. A reversal counts for the day
-- and the month of its charge, so these make no room in the new day.
create table late_reversals (
  organization_id text collate "C" not null,
  -- Of the reversal.
  version bigint not null,
  charge_version bigint not null,
  token_id text collate "C",
  mils bigint not null,
  constraint one_row_per_late_reversal primary key (organization_id, version)
);

-- What was given back since a version for charges before it, of one token (null: of all searches). It does not count.
create function given_back_late(organization text, token text, first_version bigint) returns bigint language sql stable as $$
  select coalesce(sum(r.mils), 0)::bigint from late_reversals r
  where r.organization_id = organization and r.version >= first_version and r.charge_version < first_version
    and (token is null or r.token_id = token)
$$;

-- What searches with a token cost between two versions of its organization's ledger, without the charges that were reversed.
create function token_spent(organization text, token text, first_version bigint, last_version bigint)
returns bigint language sql stable as $$
  select coalesce(-sum(l.amount_mils), 0)::bigint from ledger_entries l
  where l.organization_id = organization and l.token_id = token and l.kind in ('charge', 'reversal')
    and l.version between first_version and last_version
$$;

-- What searches with a token cost in each chunk of 4,096 entries of a ledger, once the chunk is complete: entries never change.
-- So a limit is set in bounded time, however long the ledger is. A token without costs in a chunk has no row.
create table token_sums (
  organization_id text collate "C" not null,
  token_id text collate "C" not null,
  -- Chunk 0 has the versions 1 to 4,096.
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

-- The settlement that completes a chunk sums it up: some milliseconds in one of 4,096.
create trigger organizations_sum_tokens after update of version on organizations for each row
  when (old.version / 4096 < new.version / 4096) execute function sum_complete_chunks();

-- The same as token_spent(), from the sums of the chunks in between and the entries around them.
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

-- Credit added and corrections made between two versions of an organization's ledger. Each kind has a query of its own: with one
-- for both, Postgres may read all entries, where its statistics are older than most of them.
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

-- What an organization (token: null) or one of its tokens spent since a version by the ledger. `ledger verify` compares it with the counts.
create function spent_since(organization text, token text, first_version bigint) returns bigint language sql stable
security definer set search_path = public, pg_temp set enable_seqscan = off as $$
  select given_back_late(o.id, token, first_version) + case
    when token is null then balance_before(o.id, first_version) + credit_added(o.id, first_version, o.version) - o.balance_mils
    else token_spent_by_sums(o.id, token, first_version, o.version) end
  from organizations o where o.id = organization
$$;

-- A limit is set for the day on which its transaction began. Another transaction may have begun the count of the next day.
create function refuse_another_day() returns void language plpgsql as $$
begin
  if (clock_timestamp() at time zone 'UTC')::date <> utc_today() then
    raise exception 'the UTC day ended while a limit was set: set it again' using errcode = 'serialization_failure';
  end if;
end $$;

-- Sets or removes (null) the limits of an organization. What it spent in this day and this month is read before the organization
-- is locked, and only what came meanwhile after it: no settlement waits for the history. Returns whether the organization exists.
create function limit_organization(organization text, new_day_limit_mils bigint, new_month_limit_mils bigint)
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

-- Sets or removes (null) the limits of a token, likewise. Returns whether the token exists.
create function limit_token(token text, new_day_limit_mils bigint, new_month_limit_mils bigint)
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
  -- Searches with a token come after it, so a new one has no history. After a failover the clock may be behind by less than a minute.
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
