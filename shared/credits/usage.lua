-- Reads what an organization can spend, for one token of its rate window.
-- KEYS: pair, holds, window.  ARGV: 1 window limit, 2 window ms, 3 '1' where the token was taken before (a second look
--   after seeding a cold pair).
-- Returns {outcome, requests in the window, ms to its end, mils left to spend}: read, limited or cold.
local used, leftMs = readWindow(KEYS[3], tonumber(ARGV[2]))
if ARGV[3] ~= '1' then
  if used >= tonumber(ARGV[1]) then return {'limited', used, leftMs, 0} end
  used = takeFromWindow(KEYS[3], used, leftMs)
end
local balance = tonumber(redis.call('HGET', KEYS[1], 'balance'))
if not balance then return {'cold', used, leftMs, 0} end
local held = tonumber(redis.call('HGET', KEYS[2], 'held')) or 0
return {'read', used, leftMs, math.max(balance - held, 0)}
