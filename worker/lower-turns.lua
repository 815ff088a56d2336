-- Lowers the turns of the searches that wait beyond the shares of their organizations, all by the same.
-- KEYS: the searches that wait by their turn.
-- ARGV: 1 the lowest score beyond shares, 2 the score from which on turns are high, 3 the score below which the next search is one
--   whose turn was lowered lately, 4 by how much high scores are lowered.
-- Returns how many were lowered: none while the next search has no high turn, as those behind it have to stay behind it.
local nextScore = tonumber(redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
if not nextScore or nextScore >= tonumber(ARGV[3]) and nextScore < tonumber(ARGV[2]) then return 0 end
local high = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[2], '+inf')
for _, id in ipairs(high) do redis.call('ZINCRBY', KEYS[1], '-' .. ARGV[4], id) end
return #high
