-- Reads overdue holds, oldest first, from the index of all organizations' open holds: a sorted set of
-- organization|request id|hash of the Idempotency-Key ('' without one), by deadline (ms since the epoch).
-- An entry whose hold is gone is removed: a process of a version without the index has ended it.
-- Organizations whose last deadline is as long ago do not count as open any more; a process of an earlier version has settled them.
-- KEYS: index, organizations with open holds.  ARGV: 1 ms after its deadline that a hold counts as overdue, 2 entries to skip, 3 entries to read at most.
-- Returns the entries.
local time = redis.call('TIME')
local latestMs = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '(' .. latestMs)
local overdue = {}
for _, entry in ipairs(redis.call('ZRANGE', KEYS[1], '-inf', '(' .. latestMs, 'BYSCORE', 'LIMIT', ARGV[2], ARGV[3])) do
  local organization, requestId = string.match(entry, '^([^|]*)|([^|]*)|')
  if redis.call('HEXISTS', '{' .. organization .. '}:holds', requestId) == 1 then
    overdue[#overdue + 1] = entry
  else
    redis.call('ZREM', KEYS[1], entry)
  end
end
return overdue
