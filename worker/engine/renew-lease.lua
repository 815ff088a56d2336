-- Renews a lease, unless another worker has it by now.
-- KEYS: the flight's record.  ARGV: 1 the token of the holder, 2 ms until the lease expires.
-- Returns nothing.
if redis.call('HGET', KEYS[1], 'holder') == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
