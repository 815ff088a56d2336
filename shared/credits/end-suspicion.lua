-- Ends the suspicion against a copy of a balance, and deletes the copy if Postgres has recorded it as a gap.
-- KEYS: balance, limited tokens, suspect copies.
-- ARGV: field and value of the entry, '1' if it is a gap, version and balance of the copy.
-- A copy that was replaced since stays, and so does an entry that was changed since. Returns 1 if the copy was deleted.
if redis.call('HGET', KEYS[3], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[3], ARGV[1]) end
if ARGV[3] ~= '1' then return 0 end
local copy = redis.call('HMGET', KEYS[1], 'version', 'balance')
if copy[1] ~= ARGV[4] or copy[2] ~= ARGV[5] then return 0 end
return redis.call('DEL', KEYS[1], KEYS[2]) > 0 and 1 or 0
