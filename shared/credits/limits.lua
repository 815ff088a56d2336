-- Limits of an organization or a token. This text is put in front of admit.lua and usage.lua, behind window.lua. Postgres counts
-- what was spent, as "day:mils of the day:mils of its month:day on which the next month begins", with days since 1970. Redis
-- keeps this text behind the version of the balance that it belongs to.

-- Returns that version, and the mils spent today and in this month: 0 once the counted day or month is over. Nothing if absent.
local function readSpending(kept)
  local version, day, dayMils, monthMils, nextMonth =
    string.match(kept or '', '^(%d+):(%d+):(-?%d+):(-?%d+):(%d+)$')
  if not version then return end
  local today = math.floor(nowMs / 86400000)
  return version, today > tonumber(day) and 0 or tonumber(dayMils), today >= tonumber(nextMonth) and 0 or tonumber(monthMils)
end

-- Returns which limit these mils on top would exceed ('day', 'month' or nothing), and what was spent against it. '': no limit.
local function limitReached(dayMils, monthMils, mils, dayLimit, monthLimit)
  if dayLimit ~= '' and dayMils + mils > tonumber(dayLimit) then return 'day', dayMils end
  if monthLimit ~= '' and monthMils + mils > tonumber(monthLimit) then return 'month', monthMils end
end
