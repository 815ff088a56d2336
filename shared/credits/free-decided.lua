-- Frees the mils of holds whose searches Postgres has decided. The holds stay with 0 mils until the process that decided drops
-- them: the search keeps its concurrency slot, and a record in flight keeps the hold by which it is swept. A token's mils stay
-- held until its spending contains the decision too: the caller stores the spending of its own token only.
-- KEYS: balance, holds, limited tokens.  ARGV: 1 version of a balance that contains the decisions, then request ids.
-- Returns the mils freed; none if Redis' copy of the balance is older than the decisions.
local version = tonumber(redis.call('HGET', KEYS[1], 'version'))
if not version or version < tonumber(ARGV[1]) then return 0 end
local freed = 0

local function isCounted(token)
  local spent = redis.call('HGET', KEYS[3], token)
  return spent and tonumber(string.match(spent, '^%d+')) >= tonumber(ARGV[1])
end

for at = 2, #ARGV do
  local token = string.match(redis.call('HGET', KEYS[3], ARGV[at]) or '', '^%d+:(.*)$')
  if token and isCounted(token) then dropTokenHold(KEYS[3], ARGV[at]) end
  local hold = redis.call('HGET', KEYS[2], ARGV[at])
  local mils, rest = string.match(hold or '', '^(%d+)(:.*)$')
  if mils and tonumber(mils) > 0 then
    redis.call('HSET', KEYS[2], ARGV[at], '0' .. rest)
    redis.call('HINCRBY', KEYS[2], 'held', 0 - tonumber(mils))
    freed = freed + tonumber(mils)
  end
end
return freed
