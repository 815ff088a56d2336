-- What was spent by the end of a day or month no longer has the reversals of earlier charges: counts that had one are counted anew.
do $$
declare
  late record;
begin
  for late in select distinct l.organization_id, l.token_id from late_reversals l loop
    perform limit_organization(o.id, o.day_limit_mils, o.month_limit_mils)
    from organizations o where o.id = late.organization_id and o.spending_day is not null;
    perform limit_token(t.id, t.day_limit_mils, t.month_limit_mils)
    from tokens t where t.id = late.token_id and t.spending_day is not null;
  end loop;
end $$;
