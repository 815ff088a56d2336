-- Outside of a transaction: the changes of an account are counted, however many sign-ins are among them.
drop index concurrently if exists audit_entries_of_changes;
create index concurrently audit_entries_of_changes on audit_entries (organization_id, at)
where actor_kind = 'account' and action not in ('session.opened', 'session.closed');
