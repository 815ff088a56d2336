-- What the processes may do. Every run applies this file in the transaction of the last migration, whether or not one
-- was pending: a database that was restored from a dump has neither the role, which belongs to the server, nor what was
-- granted to it. Grant new tables, columns and functions here, not in a migration.

do $$
begin
  if not exists (select from pg_roles where rolname = 'serpmill') then
    create role serpmill nologin;
  end if;
exception when duplicate_object or unique_violation then null; -- Another database of this server makes it right now.
end $$;

do $$
begin
  if not pg_has_role(current_user, 'serpmill', 'member') then
    execute format('grant serpmill to %I', current_user);
  end if;
  -- Since Postgres 16 the user that made a role is its member without being allowed to switch to it.
  set local role serpmill;
  reset role;
exception when insufficient_privilege then
  execute format('grant serpmill to %I', current_user);
end $$;

-- The functions that move money look up names in this schema, so only the owner may create anything in it.
revoke create on schema public from public;
grant usage on schema public to serpmill;

revoke all on all tables in schema public from serpmill;
revoke all on all functions in schema public from serpmill;

-- Processes move money only by calling these functions, which run as their owner. The migration has closed every function to all others.
grant execute on function
  utc_today, month_of, spending_text, answer_slot, first_version_since,
  decide_searches, charge_alone, reverse_charges, change_credit, topup,
  limit_organization, limit_token, end_token, clear_old_answers, clear_old_refunds, rotate_days, clear_old_sign_ins, begin_erasure, erase_page,
  begin_auto_topup, claim_auto_topups, postpone_auto_topup, hasten_auto_topup, fail_auto_topup, pay_auto_topup, erase_auto_topup,
  record_ledger_gaps, close_ledger_gap, spent_since, keep_ledger_checkpoints,
  charge_stands, find_kept_answers, previous_answer, keep_answers, clear_kept_answers
to serpmill;

-- So that the operator's doctor can see whether a migration is pending.
grant select on migrations to serpmill;

-- The ledger and the refunds are read, never written. Confirming a delivery deletes its row from `undelivered`.
grant select on organizations, tokens, plans, ledger_entries, refunds, refund_counts, answers, key_payments, undelivered to serpmill;
grant select on organization_spending, token_spending to serpmill;
grant delete on undelivered to serpmill;

-- The operator's commands, column by column: never a balance, a version, or the hash, the owner
-- and the scopes of a token that exists.
grant insert (id, name, plan_code), update (name, plan_code, suspended_at, kept_answer_days) on organizations to serpmill;
grant
  insert (id, organization_id, hash, last4, expires_at, name, scopes, parent_id, day_limit_mils, month_limit_mils, spending_day,
    spent_day_mils, spent_month_mils),
  update (last_used_at, revoked_at)
on tokens to serpmill;
grant
  insert (code, price_mils, price_per_page_mils, cached_price_mils, max_depth, window_limit, window_seconds, concurrency, operations,
    unpaid_calls_per_hour),
  update (price_mils, price_per_page_mils, cached_price_mils, max_depth, window_limit, window_seconds, concurrency, operations,
    unpaid_calls_per_hour)
on plans to serpmill;

-- The search log is written by the process that ended the search, and completed by the worker if the API was first.
grant select, insert, update (source, provider, calls) on search_log to serpmill;

-- The API writes what it refused, and maintenance deletes it after a week.
grant select, insert, delete on refused_searches to serpmill;

-- Kept answers are read through the view alone: while their charges stand.
grant select on readable_answers to serpmill;

-- The audit trail is read and appended to. Postgres gives each entry its id and its time.
grant select on audit_entries to serpmill;
grant insert (actor_kind, actor, origin, action, organization_id, subject, before, after, request_id)
on audit_entries to serpmill;

-- `ledger verify` compares these with the ledger. Its checkpoints are kept by a function, which refuses one that disagrees with the
-- ledger. Only the owner deletes one.
grant select on late_reversals, token_sums, ledger_checkpoints to serpmill;

-- What Postgres lost is recorded and closed by functions alone.
grant select on ledger_gaps to serpmill;

-- No money: what payers set, and the events for their webhooks, which are deleted after a month.
grant select, insert, update, delete on low_balance_thresholds, webhooks, webhook_events to serpmill;
grant select, insert, delete on webhook_old_secrets to serpmill;

-- What payers set about automatic top-ups. Their payments are read, and written by functions alone, which keep the ceiling.
grant select, insert, update on auto_topups to serpmill;
grant select on auto_topup_payments to serpmill;
grant select, insert, update, delete on stripe_deletions to serpmill;

-- The command that refreshes the lists of locations replaces them whole.
grant select, insert, update, delete on location_lists to serpmill;
grant select, insert, delete on locations to serpmill;
