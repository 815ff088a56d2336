-- The provider calls that callers left unpaid (see unpaid-calls.ts). This text is put in front of admit.lua and settle.lua.
-- A level is a key that lives as long as its calls count: each adds its share of an hour to the key's life, so a level drains
-- evenly, and at an hour the budget is used up.
local budgetMs = 3600000
-- A charge can be reversed for this long; see undeliveredReversalAfterMs.
local sharedAnswerMs = 600000
-- So many searches that paid for one answer are not all going to be reversed.
local payersMax = 100

-- Returns the milliseconds until both levels are below the budget again; 0 if they are.
local function unpaidLeftMs(organizationLevel, tokenLevel)
  local levelMs = math.max(redis.call('PTTL', organizationLevel), redis.call('PTTL', tokenLevel))
  return math.max(levelMs - budgetMs + 1, 0)
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

local function countUnpaid(level, addedMs)
  redis.call('SET', level, '', 'PX', math.max(redis.call('PTTL', level), 0) + addedMs)
end
