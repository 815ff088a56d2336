-- Counts the open holds of organizations.
-- KEYS: the holds of each.  ARGV: none.  Returns how many each has.
local counts = {}
for at, holds in ipairs(KEYS) do
  -- One field is the sum of what they hold.
  counts[at] = math.max(0, redis.call('HLEN', holds) - 1)
end
return counts
