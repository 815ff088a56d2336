-- Notes a copy of a balance as suspect, if it still has this version.
-- KEYS: balance, suspect copies.  ARGV: organization, version of the copy, id of the suspicion, Postgres' version and balance.
-- Returns 1 if the copy was still there.
if redis.call('HGET', KEYS[1], 'version') ~= ARGV[2] then return 0 end
noteSuspect(KEYS[2], KEYS[1], ARGV[1], ARGV[3], ARGV[4], ARGV[5])
return 1
