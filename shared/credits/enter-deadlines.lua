-- Adds the open holds of organizations to the index, where it lacks them: a process of a version without the index has
-- placed them.
-- KEYS: index, then the holds of each organization.  ARGV: none.
-- Returns how many were added.
local added = 0
for at = 2, #KEYS do
  -- One field of the hash is the sum; all others are holds.
  if redis.call('HLEN', KEYS[at]) > 1 then
    local fields = redis.call('HGETALL', KEYS[at])
    for field = 1, #fields, 2 do
      local deadline, keyHash = string.match(fields[field + 1], '^%d+:(%d+):(.*)$')
      if deadline then
        added = added + redis.call('ZADD', KEYS[1], 'NX', deadline, indexEntry(KEYS[at], fields[field], keyHash))
      end
    end
  end
end
return added
