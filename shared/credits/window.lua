-- The rate window of an organization. This text is put in front of admit.lua and usage.lua.
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
