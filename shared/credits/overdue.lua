-- Reads the holds of one organization.
-- KEYS: holds.  ARGV: 1 ms after its deadline that a hold counts as overdue.
-- Returns {open holds, mils held, then for each overdue hold its request id and the hash of its key ('' without one)}.
local open = redis.call('HLEN', KEYS[1])
if open <= 1 then return {0, 0} end
local time = redis.call('TIME')
local latestMs = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(ARGV[1])
local fields = redis.call('HGETALL', KEYS[1])
local seen = {open - 1, 0}
for at = 1, #fields, 2 do
  if fields[at] == 'held' then
    seen[2] = tonumber(fields[at + 1])
  else
    local deadline, keyHash = string.match(fields[at + 1], '^%d+:(%d+):(.*)$')
    if tonumber(deadline) < latestMs then
      seen[#seen + 1] = fields[at]
      seen[#seen + 1] = keyHash
    end
  end
end
return seen
