-- The provider calls that callers left unpaid (see unpaid-calls.ts). This text is put in front of admit.lua and settle.lua.
-- A level is a key that lives as long as its calls count: each adds its share of an hour to the key's life, so a level drains
-- evenly, and at an hour the budget is used up. Its value is the part of that life which refuses searches. The rest is what single
-- tokens left unpaid beyond their half, because their calls were in flight: it refuses no other token, is one budget at most,
-- and drains first. So an organization's calls drain as fast as before, however many tokens share them.
local budgetMs = 3600000
-- A charge can be reversed for this long; see undeliveredReversalAfterMs.
local sharedAnswerMs = 600000
-- So many searches that paid for one answer are not all going to be reversed.
local payersMax = 100

-- Returns the part that refuses searches, and the whole. A key that would live longer than it was given (the clock was set back)
-- counts as absent.
local function readLevel(level)
  local wholeMs, refusingMs = math.max(redis.call('PTTL', level), 0), tonumber(redis.call('GET', level) or 0)
  if wholeMs > refusingMs + budgetMs then return 0, 0 end
  return math.min(wholeMs, refusingMs), wholeMs
end

-- Returns the milliseconds until both levels are below the budget again; 0 if they are.
local function unpaidLeftMs(organizationLevel, tokenLevel)
  local leftMs = 0
  for _, level in ipairs({organizationLevel, tokenLevel}) do
    local refusingMs, wholeMs = readLevel(level)
    if refusingMs >= budgetMs then leftMs = math.max(leftMs, wholeMs - budgetMs + 1) end
  end
  return leftMs
end

local function notePayer(flight, id)
  if redis.call('HLEN', flight) >= payersMax then return end
  redis.call('HSET', flight, id, '')
  redis.call('PEXPIRE', flight, sharedAnswerMs, 'NX')
end

-- How many calls an end without payment leaves to count, 0 if the message comes again. `flight` remembers who paid for an
-- answer that several searches shared, and in 'calls' those that count once the last of them did not pay either.
local function unpaidOf(flight, id, calls)
  redis.call('HDEL', flight, id)
  if calls > 0 then
    local isPaid = redis.call('HLEN', flight) > 0
    if redis.call('HSETNX', flight, 'calls', isPaid and calls or 0) == 0 then return 0 end
    redis.call('PEXPIRE', flight, sharedAnswerMs, 'NX')
    return isPaid and 0 or calls
  end
  local left = tonumber(redis.call('HGET', flight, 'calls')) or 0
  if left == 0 or redis.call('HLEN', flight) > 1 then return 0 end
  redis.call('HSET', flight, 'calls', 0)
  return left
end

local function setLevel(level, refusingMs, wholeMs)
  redis.call('SET', level, refusingMs, 'PX', wholeMs)
end

-- A token may use half of the budget, so its calls count twice for its own level.
local function countUnpaid(organizationLevel, tokenLevel, addedMs)
  local refusingMs, wholeMs = readLevel(organizationLevel)
  local _, tokenMs = readLevel(tokenLevel)
  tokenMs = tokenMs + 2 * addedMs
  local roomMs = math.min(addedMs, budgetMs - (wholeMs - refusingMs))
  local beyondMs = math.min(math.max(math.floor((tokenMs - budgetMs) / 2), 0), roomMs)
  setLevel(organizationLevel, refusingMs + addedMs - beyondMs, wholeMs + addedMs)
  setLevel(tokenLevel, tokenMs, tokenMs)
end
