-- Acquires the lease of a query's flight, or returns the result of an earlier flight. The holder acquires it again if it repeats
-- the command, as after a lost reply.
-- KEYS: the flight's record; its field 'holder' is the token of the holder.
-- ARGV: 1 the token of this worker, 2 ms until the lease expires unless it is renewed,
--   3 the oldest acceptable answer (ms since the epoch), 4 the lease that this worker has waited for, or '',
--   5 the organization whose search waits here, 6 how many it has open.
-- Returns {'acquired'}, {'held', token of the holder} or {'published', answer or failure as JSON, at (ms since the epoch)}.
-- Clocks of workers are behind or ahead by less than this.
local aheadMsMax = 5000
local holder, answer, at, failure, failedBy =
  unpack(redis.call('HMGET', KEYS[1], 'holder', 'answer', 'at', 'failure', 'failedBy'))
-- The age of an answer of later than now is unknown: the clock was set back.
if answer and tonumber(at) >= tonumber(ARGV[3]) and tonumber(at) < redis.call('TIME')[1] * 1000 + aheadMsMax then
  return {'published', answer, at}
end
if holder and holder ~= ARGV[1] then
  redis.call('HSET', KEYS[1], 'awaited', '1')
  -- For the holder's next renewal. Of several organizations the one with the fewest open searches stays.
  local open = redis.call('HGET', KEYS[1], 'openSearches')
  if not open or tonumber(ARGV[6]) < tonumber(open) then
    redis.call('HSET', KEYS[1], 'organizationId', ARGV[5], 'openSearches', ARGV[6])
  end
  return {'held', holder}
end
if failure and failedBy == ARGV[4] then return {'published', failure, at} end
-- Keep 'awaited': workers that waited for a released lease wait for this one now. Keep 'answer' and 'at': workers that waited for
-- that answer have not all polled yet.
redis.call('HDEL', KEYS[1], 'failure', 'failedBy', 'organizationId', 'openSearches')
redis.call('HSET', KEYS[1], 'holder', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'acquired'}
