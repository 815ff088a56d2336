-- Takes the lease of maintenance, or renews that of this worker.
-- KEYS: the lease.  ARGV: 1 the id of this worker, 2 ms until the lease expires.
-- Returns 1 if this worker leads, otherwise 0.
local leader = redis.call('GET', KEYS[1])
if leader and leader ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
