-- The sums of token-sums for the entries of this month that exist already. Reading them makes no search wait.
select sum_chunks(o.id, (first_version_since(o.id, month_of(utc_today())::timestamp at time zone 'UTC') - 1) / 4096, o.version / 4096)
from organizations o where o.version >= 4096;
