-- Who may search, on what terms, and with what token. Amounts are in mils: 1,000 mils are 1 USD.

-- Migrations run as the owner of the database. The API, the workers and the commands are confined to the role `serpmill`.
do $$
begin
  if current_user = 'serpmill' then
    raise exception 'connect as another user: serpmill is the role that the processes are confined to';
  end if;
end $$;

-- A plan: the terms that an organization buys under. Many organizations share one.
create table plans (
  code text primary key,
  -- Either one price for a search of any depth, or a price for each page of 10 results. Ten pages cost less than 2^53 mils.
  price_mils bigint,
  price_per_page_mils bigint,
  -- What a search is charged that its organization's own kept answer answers; per page where the price is. Null: the whole price.
  cached_price_mils bigint,
  -- The largest `depth` of a search. Null: the API's own maximum.
  max_depth integer,
  -- At most `window_limit` requests in each `window_seconds`, by Redis' clock.
  window_limit integer not null,
  window_seconds integer not null,
  -- The number of searches that may be in flight at the same time.
  concurrency integer not null,
  -- Provider calls that callers may leave unpaid in an hour, as when they disconnect while a search runs.
  unpaid_calls_per_hour integer not null,
  -- The credit that a new organization starts with. Only the owner of the database can set it.
  starting_grant_mils bigint not null default 0,
  -- The API operations that the plan allows, such as `serp.search`.
  operations text[] not null,
  constraint plan_code_is_a_short_word check (code ~ '^[a-z][a-z0-9_-]{0,31}$'),
  constraint plan_has_one_price check (num_nulls(price_mils, price_per_page_mils) = 1),
  constraint price_is_never_negative check (price_mils between 0 and 9007199254740991),
  constraint price_per_page_is_never_negative check (price_per_page_mils between 0 and 900719925474099),
  -- A search holds its price. Its charge must not be more than that.
  constraint cached_price_is_at_most_the_price check (cached_price_mils between 0 and coalesce(price_mils, price_per_page_mils)),
  constraint max_depth_is_a_depth check (max_depth between 1 and 100),
  constraint window_admits_at_least_one check (window_limit > 0 and window_seconds > 0),
  constraint concurrency_admits_at_least_one check (concurrency > 0),
  constraint some_calls_may_stay_unpaid check (unpaid_calls_per_hour > 0),
  constraint starting_grant_is_never_negative check (starting_grant_mils between 0 and 9007199254740991)
);

insert into plans (code, price_mils, window_limit, window_seconds, concurrency, unpaid_calls_per_hour, starting_grant_mils, operations) values
  ('free', 5, 60, 60, 5, 50, 1000, '{serp.search,usage.get}'),
  ('payg', 5, 600, 60, 100, 1000, 0, '{serp.search,usage.get}');

-- An organization pays for its searches. Its row holds the newest balance of its ledger, so a lock on the row puts all its
-- entries in order.
-- Amounts stay below 2^53, so that JavaScript reads each of them exactly.
create table organizations (
  -- A TypeID. Ids have the collation "C", so they are ordered by their bytes.
  id text collate "C" primary key,
  name text not null,
  plan_code text not null references plans (code),
  balance_mils bigint not null default 0,
  -- The number of ledger entries. The copies of the balance in Redis are ordered by it.
  version bigint not null default 0,
  -- The spending limits that the payer has set, in mils for a day and a calendar month, both in UTC. Null: no limit.
  day_limit_mils bigint,
  month_limit_mils bigint,
  -- There is no counter of spending. It is the balance with which the day and the month began, plus the credit added and the
  -- corrections made since, minus the present balance. All three are null until a limit is set for the first time.
  spending_day date,
  day_began_with_mils bigint,
  month_began_with_mils bigint,
  -- For so many days the payer wants the answers of its searches kept, at most as many as the operator allows.
  kept_answer_days integer not null default 0,
  -- The time of the first payment. A grant by an operator does not count.
  first_topup_at timestamptz,
  created_at timestamptz not null default now(),
  suspended_at timestamptz,
  -- The row of an erased organization stays, because the ledger refers to it.
  erased_at timestamptz,
  constraint organization_id_is_a_typeid check (id ~ '^org_[0-7][0-9a-z]{25}$'),
  constraint organization_has_a_name check (length(trim(name)) between 1 and 200),
  constraint balance_is_never_below_zero check (balance_mils between 0 and 9007199254740991),
  constraint answers_are_kept_for_90_days_at_most check (kept_answer_days between 0 and 90),
  constraint version_counts_up_from_zero check (version >= 0),
  constraint limits_are_never_negative check (
    day_limit_mils between 0 and 9007199254740991 and month_limit_mils between 0 and 9007199254740991),
  constraint a_limited_organization_counts_its_spending check (
    day_limit_mils is null and month_limit_mils is null
    or num_nulls(spending_day, day_began_with_mils, month_began_with_mils) = 0)
) with (fillfactor = 50); -- Every settlement updates the row. Room in its page keeps those updates off the indexes.

-- A token of an organization. Its secret is stored as SHA-256 only: it has 165 random bits, so a slow hash would add nothing.
create table tokens (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organizations (id),
  -- The token that made this one. It bounds the expiry and the limits of this token, and revoking it can revoke this one too.
  -- Null: an operator made this token.
  parent_id text collate "C",
  hash bytea not null,
  last4 text not null,
  -- A name that tells people what the token is for.
  name text,
  -- What the token may do.
  scopes text[] not null,
  -- The spending limits that the payer has set. Null: no limit.
  day_limit_mils bigint,
  month_limit_mils bigint,
  -- Once a token has had a limit, its spending is counted: in mils on this day and in the month of this day.
  spending_day date,
  spent_day_mils bigint,
  spent_month_mils bigint,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  constraint token_id_is_a_typeid check (id ~ '^tok_[0-7][0-9a-z]{25}$'),
  constraint token_hash_is_a_sha256 check (length(hash) = 32),
  constraint token_hashes_are_unique unique (hash),
  constraint token_name_is_not_blank check (length(trim(name)) between 1 and 100),
  constraint token_has_known_scopes check (cardinality(scopes) > 0 and scopes <@ array['search', 'usage', 'billing', 'door']),
  -- A door token is part of an address, which proxies and browser histories may keep.
  constraint a_door_token_does_nothing_else_and_is_limited check (
    not 'door' = any (scopes) or cardinality(scopes) = 1 and day_limit_mils is not null),
  constraint token_limits_are_never_negative check (
    day_limit_mils between 0 and 9007199254740991 and month_limit_mils between 0 and 9007199254740991),
  constraint a_limited_token_counts_its_spending check (
    day_limit_mils is null and month_limit_mils is null
    or num_nulls(spending_day, spent_day_mils, spent_month_mils) = 0)
);
create index tokens_by_organization on tokens (organization_id);

-- Ends a rotated token at a time, never later than its own expiry. Processes cannot write an expiry, so that none of them makes a token
-- live longer. Returns no row for a token that does not exist.
create function end_token(token text, at timestamptz) returns table (organization_id text, ended_at timestamptz)
language sql security definer set search_path = public, pg_temp as $$
  update tokens t set expires_at = least(t.expires_at, end_token.at) where t.id = end_token.token
  returning t.organization_id, t.expires_at
$$;
