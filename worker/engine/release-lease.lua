-- Deletes a lease, unless another worker waits for its result: then the lease stays until that is published.
-- KEYS: the flight's record.  ARGV: 1 the token of the holder.
-- Returns 'released', 'awaited', or 'lost' if the lease expired or another worker holds it.
local holder, awaited = unpack(redis.call('HMGET', KEYS[1], 'asker', 'awaited'))
if holder ~= ARGV[1] then return 'lost' end
if awaited then return 'awaited' end
redis.call('DEL', KEYS[1])
return 'released'
