-- Releases a lease. If other workers wait for its result, it stays held until that is published, or is free for one of them if
-- there will be none.
-- KEYS: the flight's record.  ARGV: 1 the token of the holder, 2 '1' if there will be no result.
-- Returns 'released', 'awaited', or 'lost' if the lease expired or another worker holds it.
local holder, awaited = unpack(redis.call('HMGET', KEYS[1], 'holder', 'awaited'))
if holder ~= ARGV[1] then return 'lost' end
if not awaited then
  redis.call('DEL', KEYS[1])
  return 'released'
end
if ARGV[2] ~= '1' then return 'awaited' end
-- Keep 'awaited', or the next holder may finish between two polls and skip publishing.
redis.call('HDEL', KEYS[1], 'holder')
return 'released'
