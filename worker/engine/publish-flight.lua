-- Publishes the result of a flight, which ends its lease. A worker that lost the lease to another one publishes nothing: the
-- workers that wait now wait for that one.
-- KEYS: the flight's record.  ARGV: 1 the token of the holder, 2 ms to keep the result, then fields and values of the result.
-- Returns nothing.
local holder = redis.call('HGET', KEYS[1], 'holder')
if holder and holder ~= ARGV[1] then return end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV, 3))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
