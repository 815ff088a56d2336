-- Notifications of payers: the threshold of their balance, the address of their webhook, and the outbox of events.

-- The balance below which a payer is notified.
create table low_balance_thresholds (
  organization_id text collate "C" primary key references organizations (id),
  threshold_mils bigint not null,
  -- When maintenance saw the balance below the threshold. Null: the next such balance is an event.
  below_since timestamptz,
  constraint threshold_is_above_zero check (threshold_mils between 1 and 9007199254740991)
);

-- Where an organization gets its events. Secrets are stored as they are, because each delivery is signed with them.
create table webhooks (
  organization_id text collate "C" primary key references organizations (id),
  id text collate "C" not null,
  url text not null,
  secret text not null,
  created_at timestamptz not null default now(),
  constraint webhook_id_is_a_typeid check (id ~ '^whk_[0-7][0-9a-z]{25}$'),
  constraint webhook_url_is_short check (length(url) between 1 and 2000)
);

-- The secrets that were replaced. Until its end each of them signs each delivery too, so that a receiver can change to the new one.
-- There may be several: a payer who did not copy a new secret replaces it at once, and the receiver still has the one before.
create table webhook_old_secrets (
  organization_id text collate "C" not null references webhooks (organization_id) on delete cascade,
  secret text not null,
  ends_at timestamptz not null
);
create index webhook_old_secrets_by_organization on webhook_old_secrets (organization_id);

-- The outbox: an event is recorded in the transaction that causes it, and sent later, once or more. It is kept for a month.
create table webhook_events (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organizations (id),
  type text not null,
  -- The bytes that are signed and sent.
  body text not null,
  created_at timestamptz not null default now(),
  -- When the event is sent next. Null: it was delivered or given up.
  next_attempt_at timestamptz default now(),
  -- Since the payer last asked to send the event again, and before that.
  attempts integer not null default 0,
  earlier_attempts integer not null default 0,
  last_attempt_at timestamptz,
  last_outcome text,
  last_status integer,
  delivered_at timestamptz,
  constraint event_id_is_a_typeid check (id ~ '^evt_[0-7][0-9a-z]{25}$'),
  constraint body_is_short check (length(body) < 10000)
);
create index webhook_events_by_organization on webhook_events (organization_id, created_at);
create index webhook_events_by_next_attempt on webhook_events (next_attempt_at) where next_attempt_at is not null;
create index webhook_events_by_age on webhook_events (created_at);
