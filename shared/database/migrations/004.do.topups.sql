-- Credit that was paid for: the first such top-up turns the plan `free` into `payg`, in the transaction that adds the credit.

-- When an organization first paid; null for one that never did. Grants of an operator are no payments.
alter table organizations add column first_topup_at timestamptz;

-- Adds paid credit once per grant id, through grant_credit, whose lock on the organization's row holds until the end. Only
-- the first top-up looks at the plan, also where an operator has granted its credit already: a plan to which an operator
-- moves an organization afterwards is the operator's wish, `free` included, and any other than `free` is left as it is.
-- No row comes back for an unknown organization.
create function topup(organization text, given_grant_id text, mils bigint) returns table (
  fresh boolean, balance_mils bigint, version bigint, plan_changed boolean
) language plpgsql as $$
#variable_conflict use_column
declare
  granted record;
  turned boolean;
begin
  select * into granted from grant_credit(organization, given_grant_id, mils, 'top-up');
  if not found then
    return;
  end if;
  update organizations o set plan_code = 'payg'
  where o.id = organization and o.plan_code = 'free' and o.first_topup_at is null;
  turned := found;
  update organizations o set first_topup_at = now() where o.id = organization and o.first_topup_at is null;
  return query select granted.fresh, granted.balance_mils, granted.version, turned;
end $$;

grant execute on function topup to serpmill;
