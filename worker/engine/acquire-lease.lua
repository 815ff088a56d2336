-- Acquires the lease of a query's flight, or returns the result of an earlier flight.
-- KEYS: the flight's record; its field 'holder' is the token of the holder.
-- ARGV: 1 the token of this worker, 2 ms until the lease expires unless it is renewed,
--   3 the oldest acceptable answer (ms since the epoch), 4 the lease that this worker has waited for, or ''.
-- Returns {'acquired'}, {'held', token of the holder} or {'published', answer or failure as JSON, at (ms since the epoch)}.
local holder, answer, at, failure, failedBy =
  unpack(redis.call('HMGET', KEYS[1], 'holder', 'answer', 'at', 'failure', 'failedBy'))
if answer and tonumber(at) >= tonumber(ARGV[3]) then return {'published', answer, at} end
if holder then
  redis.call('HSET', KEYS[1], 'awaited', '1')
  return {'held', holder}
end
if failure and failedBy == ARGV[4] then return {'published', failure, at} end
-- Keep 'awaited': workers that waited for a released lease wait for this one now.
redis.call('HDEL', KEYS[1], 'answer', 'at', 'failure', 'failedBy')
redis.call('HSET', KEYS[1], 'holder', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'acquired'}
