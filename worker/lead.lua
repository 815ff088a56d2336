-- Takes the lease of maintenance, or renews that of this worker.
-- KEYS: the lease.  ARGV: 1 the id of this worker, 2 ms until the lease expires.
-- Returns 1 if this worker leads, otherwise 0.
local leader = redis.call('GET', KEYS[1])
-- A lease that would live longer than it was given (the clock was set back) may be that of a dead worker.
if leader and leader ~= ARGV[1] and redis.call('PTTL', KEYS[1]) <= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
