-- An event that is sent again keeps the count of its attempts: those before the last time that a person asked for it.
alter table webhook_events add column earlier_attempts integer not null default 0;
