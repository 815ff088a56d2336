-- Admits one search, or returns why not. A refusal takes nothing from the rate window and leaves no hold.
-- KEYS: balance (its mils, version and what was spent), holds (request id -> "mils:deadline:key hash", and their sum under
--   "held"), window, record (the first request under an Idempotency-Key), index of all organizations' open holds (open-holds.ts),
--   levels of unpaid provider calls of the organization and of the token, limited tokens (token -> what it spent,
--   "held:" token -> mils, request id -> "mils:token"), organizations with open holds (see holds.ts).
-- ARGV: 1 request id, 2 price in mils, 3 searches in flight at most, 4 window limit, 5 window ms, 6 ms until the
--   deadline, 7 query fingerprint ('' without an Idempotency-Key), 8 ms that a record lives, 9 the open
--   searches of the organization from which on no hold is placed ('' for any number), 10 hash of the Idempotency-Key, so
--   that a hold names the record it owns, 11 '1' if Postgres has the answer, 12 '1' if
--   the process has as many searches in flight as ARGV 3. If the organization or the token has limits: 13 and 14 the
--   organization's mils a day and a month, 15 the token, 16 and 17 its mils a day and a month; '' for none.
-- Returns {outcome, requests in the window, ms to its end, …}:
--   held: deadline (ms since the epoch, Redis' clock), mils left to spend, open searches of the organization with this
--     one, organizations with open searches
--   unpaid_calls: ms until a search is admitted again
--   waiting: the first request under the key still runs
--   stored_answer: Postgres has the answer                      completed: meanwhile; look for the answer in Postgres
--   insufficient_credit: available, held, version of the balance
--   spending_limit: organization or token, day or month, spent, held, version of the balance
--   balance_missing: version of the balance (0 without one), whose spending is missing
--   key_reused, shed, limited, concurrency_limited: nothing more
local balance, holds, window, record, index, organizationLevel, tokenLevel, tokens, organizations = unpack(KEYS)
local id, price, fingerprint = ARGV[1], tonumber(ARGV[2]), ARGV[7]
local limit, windowMs = tonumber(ARGV[4]), tonumber(ARGV[5])
local used, leftMs = readWindow(window, windowMs)

if ARGV[11] == '1' then return {'stored_answer', used, leftMs} end
local first = fingerprint ~= '' and redis.call('HMGET', record, 'request', 'fingerprint', 'failure', 'answered') or {}
-- A failure is only for the repeats that wait already; for a new request the key is free.
if first[1] and not first[3] and first[1] ~= id then
  if first[2] ~= fingerprint then return {'key_reused', used, leftMs} end
  if first[4] then return {'completed', used, leftMs} end
  if used >= limit then return {'limited', used, leftMs} end
  return {'waiting', takeFromWindow(window, used, leftMs), leftMs}
end
-- One field of the hash is the sum; all others are holds.
local open = math.max(0, redis.call('HLEN', holds) - 1)
if ARGV[9] ~= '' and open >= tonumber(ARGV[9]) then return {'shed', used, leftMs} end

local copy = redis.call('HMGET', balance, 'balance', 'version', 'spent')
if not copy[1] then return {'balance_missing', used, leftMs, 0} end
local held = tonumber(redis.call('HGET', holds, 'held')) or 0
local available = tonumber(copy[1]) - held
-- The balance of a batch can arrive before its holds are dropped. A search for 0 mils is admitted even then.
if price > 0 and available < price then return {'insufficient_credit', used, leftMs, math.max(available, 0), held, copy[2]} end
local dayLimit, monthLimit, token, tokenDayLimit, tokenMonthLimit = unpack(ARGV, 13)
if price > 0 and dayLimit and dayLimit .. monthLimit ~= '' then
  local version, dayMils, monthMils = readSpending(copy[3])
  if version ~= copy[2] then return {'balance_missing', used, leftMs, copy[2]} end
  local period, spent = limitReached(dayMils, monthMils, held + price, dayLimit, monthLimit)
  if period then return {'spending_limit', used, leftMs, 'organization', period, spent, held, copy[2]} end
end
if price > 0 and token and token ~= '' then
  local kept = redis.call('HMGET', tokens, token, 'held:' .. token)
  local version, dayMils, monthMils = readSpending(kept[1])
  if not version then return {'balance_missing', used, leftMs, copy[2]} end
  local tokenHeld = tonumber(kept[2]) or 0
  local period, spent = limitReached(dayMils, monthMils, tokenHeld + price, tokenDayLimit, tokenMonthLimit)
  if period then return {'spending_limit', used, leftMs, 'token', period, spent, tokenHeld, copy[2]} end
end
if ARGV[12] == '1' or open >= tonumber(ARGV[3]) then return {'concurrency_limited', used, leftMs} end
local unpaidMs = unpaidLeftMs(organizationLevel, tokenLevel)
if unpaidMs > 0 then return {'unpaid_calls', used, leftMs, unpaidMs} end
if used >= limit then return {'limited', used, leftMs} end

local deadline = nowMs + tonumber(ARGV[6])
if redis.call('HSETNX', holds, id, price .. ':' .. deadline .. ':' .. ARGV[10]) == 1 then
  redis.call('HINCRBY', holds, 'held', price)
  redis.call('ZADD', index, deadline, indexEntry(holds, id, ARGV[10]))
  redis.call('SADD', organizations, organizationOf(holds))
  open = open + 1
  if price > 0 and token and token ~= '' then
    redis.call('HSET', tokens, id, price .. ':' .. token)
    redis.call('HINCRBY', tokens, 'held:' .. token, price)
  end
end
if fingerprint ~= '' then
  if first[1] then redis.call('DEL', record) end
  redis.call('HSET', record, 'request', id, 'fingerprint', fingerprint)
  redis.call('PEXPIRE', record, ARGV[8])
end
return {'held', takeFromWindow(window, used, leftMs), leftMs, deadline, math.max(available - price, 0), open,
  redis.call('SCARD', organizations)}
