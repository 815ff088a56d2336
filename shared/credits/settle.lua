-- Ends holds of one organization and stores the balance that Postgres returned. Running it late, twice or in another order
-- is safe: a hold is dropped once, and an older balance never replaces a newer one.
-- KEYS: balance, holds, index of all organizations' open holds (see overdue.lua), searches abandoned lately, limited tokens,
--   then the record of each search that had an Idempotency-Key.
-- ARGV: 1 balance, 2 version, 3 ms that the end of a record is kept for waiting repeats, 4 what was spent by this version (see
--   limits.lua; '' if the organization has no limits), 5 the number of limited tokens; then for each of these 2 values: token,
--   what it spent behind the version that this is of; then for each search 4 values:
--   request id, place of its record behind the first KEYS (0: none), its fate, the failure. The fate says how the record
--   ends (answered | failed | freed | none), or of a search without a key that its caller hung up, which is counted:
--   `abandoned` once it has ended; `abandoned_running` while a worker may still have it, which frees its mils and leaves the
--   hold as a place in flight of 0 mils.
-- Returns nothing.
local balance, holds, index, abandoned, tokens = unpack(KEYS, 1, 5)
local searchesAt = 6 + 2 * ARGV[5]

local version = tonumber(redis.call('HGET', balance, 'version'))
if not version or tonumber(ARGV[2]) > version then
  redis.call('HSET', balance, 'balance', ARGV[1], 'version', ARGV[2])
  redis.call('HDEL', balance, 'spent')
end
if ARGV[4] ~= '' and tonumber(ARGV[2]) >= (version or 0) then
  redis.call('HSET', balance, 'spent', ARGV[2] .. ':' .. ARGV[4])
end
for at = 6, searchesAt - 1, 2 do
  local kept = tonumber(string.match(redis.call('HGET', tokens, ARGV[at]) or '', '^%d+'))
  if not kept or tonumber(string.match(ARGV[at + 1], '^%d+')) >= kept then redis.call('HSET', tokens, ARGV[at], ARGV[at + 1]) end
end

local hasTokens = redis.call('EXISTS', tokens) == 1

local function drop(id)
  local hold = redis.call('HGET', holds, id)
  if not hold then return end
  local mils, keyHash = string.match(hold, '^(%d+):%d+:(.*)$')
  redis.call('HDEL', holds, id)
  redis.call('ZREM', index, indexEntry(holds, id, keyHash))
  -- Subtracted, not negated: a hold of 0 mils would give -0, which Redis does not take for an integer.
  redis.call('HINCRBY', holds, 'held', 0 - tonumber(mils))
  if hasTokens then dropTokenHold(tokens, id) end
end

local function freeMils(id)
  local mils, rest = string.match(redis.call('HGET', holds, id) or '', '^(%d+)(:.*)$')
  if not mils then return end
  redis.call('HSET', holds, id, '0' .. rest)
  redis.call('HINCRBY', holds, 'held', 0 - tonumber(mils))
  if hasTokens then dropTokenHold(tokens, id) end
end

-- A record belongs to the request that it names: no other request ends it. A `body` was left by an earlier version, which
-- kept answers here; it stays until it expires.
local function finish(record, id, fate, failure)
  local first = redis.call('HMGET', record, 'request', 'body')
  if first[1] ~= id or first[2] then return end
  if fate == 'freed' then
    redis.call('DEL', record)
    return
  end
  redis.call('HSET', record, fate == 'answered' and 'answered' or 'failure', failure)
  redis.call('PEXPIRE', record, ARGV[3])
end

for at = searchesAt, #ARGV, 4 do
  local id, record, fate, failure = ARGV[at], KEYS[5 + ARGV[at + 1]], ARGV[at + 2], ARGV[at + 3]
  if fate == 'abandoned_running' then freeMils(id) else drop(id) end
  if fate == 'abandoned_running' or fate == 'abandoned' then countAbandoned(abandoned, id) end
  if ARGV[at + 1] ~= '0' then finish(record, id, fate, failure) end
end
