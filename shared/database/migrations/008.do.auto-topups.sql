-- Automatic top-ups: the settings of payers, the payments (each row is written before Stripe is asked), and the cards that
-- Stripe has to delete.

-- The settings of a payer. They move no money by themselves: begin_auto_topup() decides whether a payment is due.
create table auto_topups (
  organization_id text collate "C" primary key references organizations (id),
  -- The ids of the customer and of the card at Stripe, which alone has the number of the card.
  customer_id text not null,
  payment_method_id text,
  card_brand text,
  card_last4 text,
  -- For example 4/2030.
  card_expires text,
  -- When Stripe got the newest card, by its clock. It stays when the card is removed: an older card must not come back.
  card_entered_at timestamptz,
  is_on boolean not null default false,
  -- Below this balance the card is charged `amount_mils`, and at most `ceiling_mils` in a calendar month in UTC.
  threshold_mils bigint,
  amount_mils bigint,
  ceiling_mils bigint,
  -- Payments that failed since one was paid, or since the payer changed something.
  failures integer not null default 0,
  -- The next payment begins no earlier than this.
  next_payment_at timestamptz not null default now(),
  paused_at timestamptz,
  pause_reason text,
  constraint card_is_whole check (num_nulls(payment_method_id, card_brand, card_last4, card_expires) in (0, 4)),
  constraint what_is_on_has_card_and_terms check (
    not is_on or num_nulls(payment_method_id, threshold_mils, amount_mils, ceiling_mils) = 0),
  constraint threshold_is_above_zero check (threshold_mils between 1 and 9007199254740991),
  constraint amount_is_in_whole_cents check (amount_mils between 500 and 999999990 and amount_mils % 10 = 0),
  constraint ceiling_has_room_for_one check (ceiling_mils between amount_mils and 9007199254740991),
  constraint pause_has_a_reason check ((paused_at is null) = (pause_reason is null))
);

-- A payment. It is `open` until Stripe says whether it was paid. Its id is the Idempotency-Key at Stripe.
create table auto_topup_payments (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organizations (id),
  -- Both are null for a payment that only Stripe knew, as after a restore from a backup.
  customer_id text,
  payment_method_id text,
  mils bigint not null,
  asked_at timestamptz not null default now(),
  state text not null default 'open',
  attempts integer not null default 1,
  -- Until then one process has claimed it. Null: it has ended.
  next_attempt_at timestamptz,
  payment_intent_id text,
  failure text,
  ended_at timestamptz,
  constraint payment_id_is_a_typeid check (id ~ '^pay_[0-7][0-9a-z]{25}$'),
  constraint payment_is_above_zero check (mils > 0),
  constraint state_is_known check (state in ('open', 'paid', 'failed')),
  constraint open_is_not_ended check ((state = 'open') = (ended_at is null) and (state = 'open') = (next_attempt_at is not null)),
  constraint paid_has_a_payment_intent check (state <> 'paid' or payment_intent_id is not null),
  constraint failed_has_a_reason check ((state = 'failed') = (failure is not null))
);
create unique index one_open_payment_per_organization on auto_topup_payments (organization_id) where state = 'open';
create index auto_topup_payments_by_organization on auto_topup_payments (organization_id, asked_at);
-- A dispute names its payment by this id alone.
create index auto_topup_payments_by_intent on auto_topup_payments (payment_intent_id);
create index auto_topup_payments_by_next_attempt on auto_topup_payments (next_attempt_at) where state = 'open';

-- Cards and customers that Stripe has to delete. The row is deleted once Stripe has done so. It names no organization, which may
-- be erased by then.
create table stripe_deletions (
  stripe_id text collate "C" primary key,
  asked_at timestamptz not null default now(),
  attempts integer not null default 0,
  -- Null: it was given up.
  next_attempt_at timestamptz default now(),
  constraint stripe_id_is_of_a_card_or_customer check (stripe_id ~ '^(pm|cus)_\w{1,250}$')
);
create index stripe_deletions_by_next_attempt on stripe_deletions (next_attempt_at);

-- Writes the row of a payment if one is due: the balance is below the threshold, no other payment is open, and the month has room.
-- The lock on the settings makes all of this one decision. Returns no row if no payment is due.
create function begin_auto_topup(organization text, payment_id text, claim_seconds integer) returns table (
  customer_id text, payment_method_id text, mils bigint, asked_at timestamptz
) language plpgsql security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
declare
  known auto_topups;
  month_begins timestamptz := date_trunc('month', now() at time zone 'UTC') at time zone 'UTC';
  next_month timestamptz := (date_trunc('month', now() at time zone 'UTC') + interval '1 month') at time zone 'UTC';
begin
  select * into known from auto_topups a where a.organization_id = organization for update;
  if known.organization_id is null or not known.is_on or known.paused_at is not null or known.next_payment_at > now() then
    return;
  end if;
  -- One statement, so one snapshot: a payment is either open or in the balance.
  if not exists (
    select from organizations o
    where o.id = organization and o.suspended_at is null and o.balance_mils < known.threshold_mils
      and not exists (select from auto_topup_payments p where p.organization_id = organization and p.state = 'open')
  ) then
    return;
  end if;
  -- A payer who switches it off and on again and again must not make the bank decline without limit.
  if (select count(*) from auto_topup_payments p
      where p.organization_id = organization and p.state = 'failed' and p.asked_at > now() - interval '24 hours') >= 10 then
    update auto_topups a set next_payment_at = now() + interval '1 hour' where a.organization_id = organization;
    return;
  end if;
  -- A failed payment was not charged, so it does not count.
  if (select coalesce(sum(p.mils), 0) from auto_topup_payments p
      where p.organization_id = organization and p.state <> 'failed' and p.asked_at >= month_begins)
    + known.amount_mils > known.ceiling_mils then
    update auto_topups a set next_payment_at = next_month where a.organization_id = organization;
    return;
  end if;
  return query
  insert into auto_topup_payments as p (id, organization_id, customer_id, payment_method_id, mils, next_attempt_at)
  values (payment_id, organization, known.customer_id, known.payment_method_id, known.amount_mils,
    now() + make_interval(secs => claim_seconds))
  returning p.customer_id, p.payment_method_id, p.mils, p.asked_at;
end $$;

-- Claims open payments whose time has come, the longest due first. No other process gets them until the claim ends.
-- `may_charge` is whether such a payment would begin now, too: the payer may have changed the settings or added credit meanwhile.
create function claim_auto_topups(payments_max integer, claim_seconds integer) returns table (
  id text, organization_id text, customer_id text, payment_method_id text, mils bigint, asked_at timestamptz, attempts integer,
  may_charge boolean
) language sql security definer set search_path = public, pg_temp as $$
  with due as (
    select p.id from auto_topup_payments p where p.state = 'open' and p.next_attempt_at <= now()
    order by p.next_attempt_at limit payments_max for update skip locked
  )
  update auto_topup_payments p
  set attempts = p.attempts + 1, next_attempt_at = now() + make_interval(secs => claim_seconds)
  from due where p.id = due.id
  returning p.id, p.organization_id, p.customer_id, p.payment_method_id, p.mils, p.asked_at, p.attempts,
    exists (select from auto_topups a join organizations o on o.id = a.organization_id
      where a.organization_id = p.organization_id and a.is_on and a.paused_at is null and o.suspended_at is null
        and a.payment_method_id = p.payment_method_id and a.amount_mils = p.mils and o.balance_mils < a.threshold_mils
        and a.ceiling_mils >= (select coalesce(sum(m.mils), 0) from auto_topup_payments m
          where m.organization_id = p.organization_id and m.state <> 'failed'
            and m.asked_at >= date_trunc('month', now() at time zone 'UTC') at time zone 'UTC'))
$$;

-- Sets when an open payment is next tried, unless another process has claimed it meanwhile, or the payer has changed the settings since
-- it was claimed: then it is tried again when the claim ends. Returns whether it did.
create function postpone_auto_topup(payment_id text, attempt integer, pause_seconds integer, claim_seconds integer) returns boolean
language sql security definer set search_path = public, pg_temp as $$
  with postponed as (
    update auto_topup_payments p set next_attempt_at = now() + make_interval(secs => pause_seconds)
    where p.id = payment_id and p.state = 'open' and p.attempts = attempt
      and not exists (select from auto_topups a where a.organization_id = p.organization_id
        and a.next_payment_at > p.next_attempt_at - make_interval(secs => claim_seconds))
    returning 1
  )
  select exists (select from postponed)
$$;

-- Has an open payment of hours ago looked at soon, because the payer has changed the settings. The two minutes are longer than an
-- attempt takes: one that has just ended without an answer may still reach Stripe, and a process may have claimed the payment.
create function hasten_auto_topup(organization text) returns void
language sql security definer set search_path = public, pg_temp as $$
  update auto_topup_payments p set next_attempt_at = least(p.next_attempt_at, now() + interval '2 minutes')
  where p.organization_id = organization and p.state = 'open'
$$;

-- Ends an open payment that was not charged. Returns whether this call did. The caller has locked the settings.
create function fail_auto_topup(payment_id text, intent text, why text) returns boolean
language sql security definer set search_path = public, pg_temp as $$
  with failed as (
    update auto_topup_payments p
    set state = 'failed', failure = why, payment_intent_id = intent, next_attempt_at = null, ended_at = now()
    where p.id = payment_id and p.state = 'open' returning 1
  )
  select exists (select from failed)
$$;

-- Ends a payment that Stripe says is paid, whatever was believed before, in the transaction that adds its credit. Its month then
-- counts it, also if its row is missing, as after a restore from a backup. A repeat changes nothing: it must not end the pause that
-- a declined card has begun since. The next payment begins a minute later at the earliest: an amount far below the threshold would
-- otherwise use up the month within seconds, before the payer can see what happens.
create function pay_auto_topup(organization text, payment_id text, intent text, paid_mils bigint, created_at timestamptz)
returns void language plpgsql security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
  -- The settings first, as everywhere, so that no two wait for each other.
  perform from auto_topups a where a.organization_id = organization for update;
  insert into auto_topup_payments as p (id, organization_id, mils, asked_at, state, payment_intent_id, ended_at)
  values (payment_id, organization, paid_mils, created_at, 'paid', intent, now())
  on conflict (id) do update
    set state = 'paid', payment_intent_id = intent, failure = null, next_attempt_at = null, ended_at = now()
    where p.organization_id = organization and p.state <> 'paid';
  if not found then return; end if;
  update auto_topups a set failures = 0, next_payment_at = now() + interval '1 minute' where a.organization_id = organization;
end $$;

-- Deletes the settings and payments of an organization, and has Stripe delete the customer together with the card.
create function erase_auto_topup(organization text) returns void
language plpgsql security definer set search_path = public, pg_temp as $$
begin
  insert into stripe_deletions (stripe_id)
  select a.customer_id from auto_topups a where a.organization_id = organization on conflict do nothing;
  delete from auto_topups a where a.organization_id = organization;
  delete from auto_topup_payments p where p.organization_id = organization;
end $$;
