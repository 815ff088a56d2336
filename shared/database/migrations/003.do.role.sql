-- What the processes may do: append to the ledger, never rewrite it. Every pool of the API, the workers and the
-- operator's commands switches to this role; only migrations run as the owner.

do $$
begin
  if current_user = 'serpmill' then
    raise exception 'connect as another user: serpmill is the role that the processes are confined to';
  end if;
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
end $$;

grant usage on schema public to serpmill;
grant select, insert on ledger_entries to serpmill;
grant select, insert, update on organizations, tokens, plans to serpmill;
grant select, insert, update, delete on paid_keys to serpmill;
grant select, insert, delete on undelivered to serpmill;
grant execute on function settle, reverse_charges, grant_credit to serpmill;
