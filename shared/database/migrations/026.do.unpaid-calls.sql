-- A plan bounds the provider calls that its callers leave unpaid in an hour, in place of the number of searches that they abandon.

alter table plans
  add column unpaid_calls_per_hour integer not null default 50
    constraint some_calls_may_stay_unpaid check (unpaid_calls_per_hour > 0);
-- As before: as many searches as may be in flight, each with the ten calls of the largest depth.
update plans set unpaid_calls_per_hour = least(10 * concurrency::bigint, 1000000);
