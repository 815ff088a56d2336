-- Charges one search with an Idempotency-Key, as charge_search() does without one: settle_keyed_searches() takes twice as long for one
-- search as these statements. A key that paid before, expired or not, is not the usual case, so that one decides.
-- The lock on the organization comes before the look at the key: no other search can pay under the key in between.
create function charge_keyed_search(
  organization text, request text, price_mils bigint, token text, used_key text, used_fingerprint text, sent_body bytea
) returns table (
  request_id text, organization_id text, kind text, amount_mils bigint, reason text, fresh boolean, reversed boolean,
  balance_mils bigint, version bigint, spending text, token_id text, token_spending text, answer_of text, answer bytea
) language plpgsql security definer set search_path = public, pg_temp set enable_seqscan = off as $$
#variable_conflict use_column
declare
  owner record;
begin
  select o.balance_mils - price_mils as balance_mils, o.version + 1 as version, o.spending_day into owner
  from organizations o where o.id = organization for no key update;
  if not found or owner.balance_mils < 0 or owner.spending_day is not null
    or exists (select from ledger_entries l where l.request_id = request and l.kind in ('charge', 'refund'))
    or exists (select from paid_keys p where p.organization_id = organization and p.key_hash = used_key)
    or exists (select from tokens t where t.id = token and t.spending_day is not null)
  then
    return query select d.* from settle_keyed_searches(array[request], array[organization], array['charge'], array[price_mils],
      array[null], array[used_key], array[used_fingerprint], array[token], array[sent_body]) d;
    return;
  end if;
  insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, token_id)
  values (organization, owner.version, 'charge', -price_mils, owner.balance_mils, request, token);
  insert into paid_keys (organization_id, key_hash, fingerprint, request_id, expires_at)
  values (organization, used_key, used_fingerprint, request, now() + interval '24 hours');
  insert into answers (slot, organization_id, key_hash, request_id, body)
  values (answer_slot(now()), organization, used_key, request, sent_body)
  on conflict on constraint one_answer_per_key do update
    set request_id = excluded.request_id, body = excluded.body;
  update organizations o set balance_mils = owner.balance_mils, version = owner.version where o.id = organization;
  return query select request, organization, 'charge', -price_mils, null::text, true, false, owner.balance_mils, owner.version,
    null::text, token, null::text, null::text, null::bytea;
end $$;
