-- Frees what a search holds against the limits of its token. This text is put in front of settle.lua and free-decided.lua.
local function dropTokenHold(tokens, id)
  local mils, token = string.match(redis.call('HGET', tokens, id) or '', '^(%d+):(.*)$')
  if not mils then return end
  redis.call('HDEL', tokens, id)
  if redis.call('HINCRBY', tokens, 'held:' .. token, 0 - tonumber(mils)) == 0 then
    redis.call('HDEL', tokens, 'held:' .. token)
  end
end
