-- Moves the next searches within shares from their turns to the end of the list that comes before all turns.
-- KEYS: 1 the list, whose oldest search comes next, 2 the searches that wait by their turn.
-- ARGV: 1 the lowest score beyond shares, 2 how many may wait in the list.
-- Returns how many wait in the list.
local listed = redis.call('LLEN', KEYS[1])
local room = tonumber(ARGV[2]) - listed
if room <= 0 then return listed end
local ids = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. ARGV[1], 'LIMIT', 0, room)
for _, id in ipairs(ids) do
  redis.call('ZREM', KEYS[2], id)
  redis.call('LPUSH', KEYS[1], id)
end
return listed + #ids
