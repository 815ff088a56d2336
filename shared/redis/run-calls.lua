-- Runs a script several times in one command. This text is put behind the script, which is the function run(KEYS, ARGV).
-- KEYS: the keys of each call, in turn.  ARGV: for each call the number of its keys, the number of its arguments, and these.
-- Returns the reply of each call, or its error: one call that fails does not stop the others. If this server takes no writes,
-- the whole command fails and nothing was written, so it can be sent again to another server.
local function part(list, first, last)
  -- unpack() is faster, but fails for some thousand values.
  if last - first < 1000 then return {unpack(list, first, last)} end
  local values = {}
  for at = first, last do values[#values + 1] = list[at] end
  return values
end

local replies, key, at = {}, 0, 1
while at < #ARGV do
  local lastKey, last = key + ARGV[at], at + 1 + ARGV[at + 1]
  local ok, reply = pcall(run, part(KEYS, key + 1, lastKey), part(ARGV, at + 2, last))
  if not ok then
    -- Redis 7.0 raises a text, later versions and Valkey a table.
    if type(reply) == 'string' then reply = {err = reply} end
    if string.find(reply.err, '^%-?READONLY ') then return reply end
  end
  -- Redis ends a list at the first nil.
  replies[#replies + 1] = reply or false
  key, at = lastKey, last + 1
end
return replies
