-- The searches of an organization that were abandoned lately: a sorted set of their request ids, by when they were counted
-- (ms since the epoch). This text is put in front of admit.lua and settle.lua.
-- A search counts once, however often its end is repeated, and for the whole window.
local abandonedWindowMs = 3600000

local function countAbandoned(abandoned, requestId)
  local time = redis.call('TIME')
  local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZREMRANGEBYSCORE', abandoned, '-inf', nowMs - abandonedWindowMs)
  redis.call('ZADD', abandoned, 'NX', nowMs, requestId)
  redis.call('PEXPIRE', abandoned, abandonedWindowMs)
end

-- Returns the milliseconds until there are fewer than `bound`; 0 if there are fewer now.
local function abandonedLeftMs(abandoned, bound, nowMs)
  if redis.call('ZCOUNT', abandoned, '(' .. nowMs - abandonedWindowMs, '+inf') < bound then return 0 end
  local oldest = redis.call('ZRANGE', abandoned, -bound, -bound, 'WITHSCORES')
  return oldest[2] + abandonedWindowMs - nowMs
end
