-- Ends holds of one organization and stores the balance that Postgres returned. Running it late, twice or in another order
-- is safe: a hold is dropped once, an older balance never replaces a newer one, and the first answer's bytes stay.
-- KEYS: balance, holds, index of all organizations' open holds (see overdue.lua), searches abandoned lately, then the record
--   of each search that had an Idempotency-Key.
-- ARGV: 1 balance, 2 version, 3 ms that a record lives, 4 ms that a failure is kept for waiting repeats; then for each
--   search 5 values: request id, place of its record behind the first KEYS (0: none), its fate, the bytes, the query
--   fingerprint. The fate says what to do with the record (answer | failure | none), or of a search without a key that its
--   caller hung up, which is counted: `abandoned` once it has ended; `abandoned_running` while a worker may still have it,
--   which frees its mils and leaves the hold as a place in flight of 0 mils.
-- Returns for each search the bytes under its key if another run's answer was there first, else ''; and its request id.
local balance, holds, index, abandoned = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local version = tonumber(redis.call('HGET', balance, 'version'))
if not version or tonumber(ARGV[2]) > version then
  redis.call('HSET', balance, 'balance', ARGV[1], 'version', ARGV[2])
end

local function drop(id)
  local hold = redis.call('HGET', holds, id)
  if not hold then return end
  local mils, keyHash = string.match(hold, '^(%d+):%d+:(.*)$')
  redis.call('HDEL', holds, id)
  redis.call('ZREM', index, indexEntry(holds, id, keyHash))
  -- Subtracted, not negated: a hold of 0 mils would give -0, which Redis does not take for an integer.
  redis.call('HINCRBY', holds, 'held', 0 - tonumber(mils))
end

local function freeMils(id)
  local mils, rest = string.match(redis.call('HGET', holds, id) or '', '^(%d+)(:.*)$')
  if not mils then return end
  redis.call('HSET', holds, id, '0' .. rest)
  redis.call('HINCRBY', holds, 'held', 0 - tonumber(mils))
end

-- A record belongs to the request that it names. No other request fills or frees it while that one runs.
local function remember(record, id, body, fingerprint)
  local first = redis.call('HMGET', record, 'request', 'body', 'failure')
  if first[2] then return first[2], first[1] end
  if first[1] and first[1] ~= id and not first[3] then return '', id end
  if not first[1] or first[3] then
    redis.call('DEL', record)
    redis.call('HSET', record, 'request', id, 'fingerprint', fingerprint)
    redis.call('PEXPIRE', record, ARGV[3])
  end
  redis.call('HSET', record, 'body', body)
  return '', id
end

local function free(record, id, failure)
  local first = redis.call('HMGET', record, 'request', 'body')
  if first[1] ~= id or first[2] then return end
  if failure == '' then
    redis.call('DEL', record)
  else
    redis.call('HSET', record, 'failure', failure)
    redis.call('PEXPIRE', record, ARGV[4])
  end
end

local results = {}
for at = 5, #ARGV, 5 do
  local id, record, fate, bytes = ARGV[at], KEYS[4 + ARGV[at + 1]], ARGV[at + 2], ARGV[at + 3]
  if fate == 'abandoned_running' then freeMils(id) else drop(id) end
  if fate == 'abandoned_running' or fate == 'abandoned' then countAbandoned(abandoned, id) end
  local before, owner = '', id
  if fate == 'answer' then before, owner = remember(record, id, bytes, ARGV[at + 4]) end
  if fate == 'failure' then free(record, id, bytes) end
  results[#results + 1] = before
  results[#results + 1] = owner
end
return results
