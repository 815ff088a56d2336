-- Who may search, on which terms, and with which token.

create table plans (
  code text primary key,
  price_mils bigint not null,
  window_limit integer not null,
  window_seconds integer not null,
  concurrency integer not null,
  starting_grant_mils bigint not null default 0,
  operations text[] not null,
  constraint plan_code_is_a_short_word check (code ~ '^[a-z][a-z0-9_-]{0,31}$'),
  constraint price_is_never_negative check (price_mils between 0 and 9007199254740991),
  constraint window_admits_at_least_one check (window_limit > 0 and window_seconds > 0),
  constraint concurrency_admits_at_least_one check (concurrency > 0),
  constraint starting_grant_is_never_negative check (starting_grant_mils between 0 and 9007199254740991)
);

insert into plans (code, price_mils, window_limit, window_seconds, concurrency, starting_grant_mils, operations) values
  ('free', 5, 60, 60, 5, 1000, '{serp.search,usage.get}'),
  ('payg', 5, 600, 60, 100, 0, '{serp.search,usage.get}');

-- Amounts stay below 2^53, so that JavaScript reads every one of them exactly.
create table organizations (
  id text collate "C" primary key,
  name text not null,
  plan_code text not null references plans (code),
  suspended_at timestamptz,
  balance_mils bigint not null default 0,
  version bigint not null default 0,
  created_at timestamptz not null default now(),
  constraint organization_id_is_a_typeid check (id ~ '^org_[0-7][0-9a-z]{25}$'),
  constraint organization_has_a_name check (length(trim(name)) between 1 and 200),
  constraint balance_is_never_below_zero check (balance_mils between 0 and 9007199254740991),
  constraint version_counts_up_from_zero check (version >= 0)
) with (fillfactor = 50); -- Every settlement updates the row; room in its page keeps those updates off the indexes.

-- A token is stored as its SHA-256 only: it has 165 random bits, so a slow hash would add nothing.
create table tokens (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organizations (id),
  hash bytea not null,
  last4 text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  constraint token_id_is_a_typeid check (id ~ '^tok_[0-7][0-9a-z]{25}$'),
  constraint token_hash_is_a_sha256 check (length(hash) = 32),
  constraint token_hashes_are_unique unique (hash)
);

create index tokens_by_organization on tokens (organization_id);
-- The sweeper's list: only an organization whose token was lately used can have a hold.
create index tokens_by_last_use on tokens (last_used_at);
