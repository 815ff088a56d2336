-- Ends holds of one organization and stores the balance that Postgres returned. Running it late, twice or in another order
-- is safe: a hold is dropped once, and an older balance never replaces a newer one.
-- KEYS: balance, holds, index of all organizations' open holds (see open-holds.ts), limited tokens, organizations with open
--   holds, suspect copies (see ledger-gaps.ts), then what searches name by its place: the record of an Idempotency-Key; or a
--   flight, followed by levels of the organization and of the token in turn.
-- ARGV: 1 balance, 2 version, 3 ms that the end of a record is kept for waiting repeats, 4 what was spent by this version (see
--   limits.lua; '' if the organization has no limits), 5 the number of limited tokens, 6 the id of the entry that made the version
--   ('' if unknown), 7, 8 and 9 the version and the balance to which these searches added their entries, and an id that can
--   name a suspicion ('' without an entry);
--   then for each limited token 2 values: token, what it spent behind the version that this is of; then for each search 5 values:
--   request id, place of its record behind the first KEYS (0: none), its ending, the failure, its calls. The ending says how the
--   record ends (answered | failed | freed | none). `left` is of a search whose caller disconnected or cancelled while a worker
--   may have it: its record has failed, its mils are freed, and the hold keeps its concurrency slot with "00" mils. The calls are '' or
--   "kind:place of the flight:levels:calls:ms that each adds to a level". They count if the kind is `unpaid` (see
--   unpaid-calls.ts), once for each flight; `paid` is of a search that shared the answer of a flight and paid for it.
-- Returns how many provider calls were counted as unpaid.
local balance, holds, index, tokens, organizations, suspects = unpack(KEYS, 1, 6)
local searchesAt = 10 + 2 * ARGV[5]

local version = tonumber(redis.call('HGET', balance, 'version'))
-- Another entry with that version was slower or faster, or Postgres has lost it. An id with the same digits names the suspicion.
if version and ARGV[7] ~= '' and version > tonumber(ARGV[7]) then
  noteSuspect(suspects, balance, organizationOf(holds), 'gap_' .. string.sub(ARGV[9], -26), ARGV[7], ARGV[8])
end
if not version or tonumber(ARGV[2]) > version then
  redis.call('HSET', balance, 'balance', ARGV[1], 'version', ARGV[2], 'entry', ARGV[6])
  redis.call('HDEL', balance, 'spent')
end
if ARGV[4] ~= '' and tonumber(ARGV[2]) >= (version or 0) then
  redis.call('HSET', balance, 'spent', ARGV[2] .. ':' .. ARGV[4])
end
for at = 10, searchesAt - 1, 2 do
  local kept = tonumber(string.match(redis.call('HGET', tokens, ARGV[at]) or '', '^%d+'))
  if not kept or tonumber(string.match(ARGV[at + 1], '^%d+')) >= kept then redis.call('HSET', tokens, ARGV[at], ARGV[at + 1]) end
end

local hasTokens = redis.call('EXISTS', tokens) == 1

local function drop(id, record)
  local mils, keyHash = string.match(redis.call('HGET', holds, id) or '', '^(%d+):%d+:(.*)$')
  -- Also without the hold, which Redis may have lost: the sweeper would find the entry again in every run.
  keyHash = keyHash or string.match(record or '', '[^:]*$')
  redis.call('ZREM', index, indexEntry(holds, id, keyHash))
  if not mils then return end
  redis.call('HDEL', holds, id)
  -- Subtracted, not negated: a hold of 0 mils would give -0, which Redis does not take for an integer.
  redis.call('HINCRBY', holds, 'held', 0 - tonumber(mils))
  if hasTokens then dropTokenHold(tokens, id) end
end

local function freeMils(id)
  local mils, rest = string.match(redis.call('HGET', holds, id) or '', '^(%d+)(:.*)$')
  if not mils then return end
  redis.call('HSET', holds, id, '00' .. rest)
  redis.call('HINCRBY', holds, 'held', 0 - tonumber(mils))
  if hasTokens then dropTokenHold(tokens, id) end
end

-- A record belongs to the request that it names: no other request ends it.
local function finish(record, id, ending, failure)
  if redis.call('HGET', record, 'request') ~= id then return end
  if ending == 'freed' then
    redis.call('DEL', record)
    return
  end
  redis.call('HSET', record, ending == 'answered' and 'answered' or 'failure', failure)
  redis.call('PEXPIRE', record, ARGV[3])
end

local function countCalls(id, spec)
  local kind, place, levels, calls, msPerCall = string.match(spec, '^(%a+):(%d+):(%d+):(%d+):(%d+)$')
  local first = 6 + place
  if kind == 'paid' then
    notePayer(KEYS[first], id)
    return 0
  end
  local unpaid = unpaidOf(KEYS[first], id, tonumber(calls))
  if unpaid == 0 then return 0 end
  for level = 1, levels, 2 do
    countUnpaid(KEYS[first + level], KEYS[first + level + 1], unpaid * msPerCall)
  end
  return unpaid
end

local unpaid = 0
for at = searchesAt, #ARGV, 5 do
  local id, place, ending, failure, calls = unpack(ARGV, at, at + 4)
  local record = place ~= '0' and KEYS[6 + place] or nil
  if ending == 'left' then freeMils(id) else drop(id, record) end
  if calls ~= '' then unpaid = unpaid + countCalls(id, calls) end
  if record then finish(record, id, ending, failure) end
end
-- One field of the hash is the sum; all others are holds.
if redis.call('HLEN', holds) <= 1 then redis.call('SREM', organizations, organizationOf(holds)) end
return unpaid
