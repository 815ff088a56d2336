-- Charges one search without an Idempotency-Key: the usual end of a search while there is little load. settle_searches() takes
-- twice as long for one search as these statements, because its plan covers every case. Where a case is not the usual one (the
-- search was decided before, the credit does not suffice, there are or were limits) it decides here, too.
-- The first statement takes the lock; the others see what was written until then, as in settle_searches().
create function charge_search(organization text, request text, price_mils bigint, token text) returns table (
  request_id text, organization_id text, kind text, amount_mils bigint, reason text, fresh boolean, reversed boolean,
  balance_mils bigint, version bigint, spending text, token_id text, token_spending text
) language plpgsql security definer set search_path = public, pg_temp set enable_seqscan = off as $$
#variable_conflict use_column
declare
  owner record;
begin
  select o.balance_mils - price_mils as balance_mils, o.version + 1 as version, o.spending_day into owner
  from organizations o where o.id = organization for no key update;
  if not found or owner.balance_mils < 0 or owner.spending_day is not null
    or exists (select from ledger_entries l where l.request_id = request and l.kind in ('charge', 'refund'))
    or exists (select from tokens t where t.id = token and t.spending_day is not null)
  then
    return query select d.* from settle_searches(array[request], array[organization], array['charge'], array[price_mils],
      array[null], array[null], array[null], array[token]) d;
    return;
  end if;
  insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, token_id)
  values (organization, owner.version, 'charge', -price_mils, owner.balance_mils, request, token);
  insert into undelivered (request_id, organization_id) values (request, organization);
  update organizations o set balance_mils = owner.balance_mils, version = owner.version where o.id = organization;
  return query select request, organization, 'charge', -price_mils, null::text, true, false, owner.balance_mils, owner.version,
    null::text, token, null::text;
end $$;
