-- A repeated event of a paid payment changes nothing: each one ended the pause that a declined card had begun since.
create or replace function pay_auto_topup(organization text, payment_id text, intent text, paid_mils bigint, created_at timestamptz)
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
  update auto_topups a set failures = 0, next_payment_at = now() where a.organization_id = organization;
end $$;
