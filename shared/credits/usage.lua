-- Reads what an organization can spend, for one request of its rate window.
-- KEYS: balance, holds, window, limited tokens.
-- ARGV: 1 window limit, 2 window ms, 3 '1' if the request was counted before (a second read, after a missing balance was
--   stored), 4 '1' if the organization has limits, 5 the token if it has limits, otherwise ''.
-- Returns {outcome, requests in the window, ms to its end, …}:
--   read: mils left to spend, balance, its version, mils held, searches that hold them, then what the organization and the token
--     spent today and in this month, and the mils held by the token (false without limits)
--   balance_missing: version of the balance (0 without one), whose spending is missing
--   limited: 0

-- Returns what readSpending() does, but 0 mils for a day or a month that is over.
local function readSpentNow(kept)
  local version, dayMils, monthMils, day, nextMonth = readSpending(kept)
  if not version then return end
  local today = math.floor(nowMs / 86400000)
  return version, today > day and 0 or dayMils, today >= nextMonth and 0 or monthMils
end

local used, leftMs = readWindow(KEYS[3], tonumber(ARGV[2]))
if ARGV[3] ~= '1' then
  if used >= tonumber(ARGV[1]) then return {'limited', used, leftMs, 0} end
  used = takeFromWindow(KEYS[3], used, leftMs)
end
local copy = redis.call('HMGET', KEYS[1], 'balance', 'version', 'spent')
local balance = tonumber(copy[1])
if not balance then return {'balance_missing', used, leftMs, 0} end
local version, dayMils, monthMils
if ARGV[4] == '1' then
  version, dayMils, monthMils = readSpentNow(copy[3])
  if version ~= copy[2] then return {'balance_missing', used, leftMs, copy[2]} end
end
local ofToken, tokenDayMils, tokenMonthMils, tokenHeld
if ARGV[5] ~= '' then
  local kept = redis.call('HMGET', KEYS[4], ARGV[5], 'held:' .. ARGV[5])
  ofToken, tokenDayMils, tokenMonthMils = readSpentNow(kept[1])
  if not ofToken then return {'balance_missing', used, leftMs, copy[2]} end
  tokenHeld = kept[2] or 0
end
local held = redis.call('HGET', KEYS[2], 'held')
-- One field of the hash is the sum; all others are holds.
local searches = redis.call('HLEN', KEYS[2]) - (held and 1 or 0)
return {
  'read', used, leftMs, math.max(balance - (tonumber(held) or 0), 0), balance, copy[2], held or 0, searches,
  dayMils or false, monthMils or false, tokenDayMils or false, tokenMonthMils or false, tokenHeld or false,
}
