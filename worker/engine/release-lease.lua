-- Ends a claim that nobody waits for. Where somebody waits it stands, for as long as it takes to tell them.
-- KEYS: the query's record.  ARGV: 1 the token of whoever claimed.
-- Returns 1 where somebody waits, else 0.
local asker, awaited = unpack(redis.call('HMGET', KEYS[1], 'asker', 'awaited'))
if asker ~= ARGV[1] then return 0 end
if awaited then return 1 end
redis.call('DEL', KEYS[1])
return 0
