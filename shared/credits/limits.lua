-- The rate window of an organization, and the spending limits of an organization or a token. This text is put in front of admit.lua
-- and usage.lua.

-- A window is fixed and aligned to Redis' clock; its key lives until its end. A key that would outlive a whole window
-- (the clock was set back, the plan's window got shorter) counts as absent.
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)

-- Returns the number of requests in the window, and the milliseconds until it ends.
local function readWindow(key, windowMs)
  local used = tonumber(redis.call('GET', key))
  local leftMs = used and redis.call('PTTL', key) or -1
  if leftMs <= 0 or leftMs > windowMs then
    return 0, windowMs - nowMs % windowMs
  end
  return used, leftMs
end

local function takeFromWindow(key, used, leftMs)
  redis.call('SET', key, used + 1, 'PX', leftMs)
  return used + 1
end

-- Postgres counts what was spent, as "day:mils of the day:mils of its month:day on which the next month begins", with days since 1970.
-- Redis keeps this text behind the version of the balance that it belongs to.

-- Returns that version, the mils spent in that day and in its month, the day, and the day on which the next month begins. Nothing if
-- absent.
local function readSpending(kept)
  local version, day, dayMils, monthMils, nextMonth =
    string.match(kept or '', '^(%d+):(%d+):(-?%d+):(-?%d+):(%d+)$')
  if not version then return end
  return version, tonumber(dayMils), tonumber(monthMils), tonumber(day), tonumber(nextMonth)
end

-- Returns which limit these mils on top would exceed ('day', 'month' or nothing), and what was spent against it. '': no limit. Of both
-- it is the month: when only the day has renewed, the search is refused again.
local function limitReached(dayMils, monthMils, mils, dayLimit, monthLimit)
  if monthLimit ~= '' and monthMils + mils > tonumber(monthLimit) then return 'month', monthMils end
  if dayLimit ~= '' and dayMils + mils > tonumber(dayLimit) then return 'day', dayMils end
end
