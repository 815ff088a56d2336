-- Renews a lease, unless another worker has it by now.
-- KEYS: the flight's record.  ARGV: 1 the token of the holder, 2 ms until the lease expires.
-- Returns {organization, open searches} that another worker has left since the last renewal, both nil for none; nil if the
-- lease is lost.
if redis.call('HGET', KEYS[1], 'holder') ~= ARGV[1] then return end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local claim = redis.call('HMGET', KEYS[1], 'organizationId', 'openSearches')
redis.call('HDEL', KEYS[1], 'organizationId', 'openSearches')
return claim
