-- Appends a value to a list. KEYS: the list.  ARGV: the value.  Returns the length, or nothing for 'quiet'; 'broken' fails.
if ARGV[1] == 'broken' then return broken.field end
local length = redis.call('RPUSH', KEYS[1], ARGV[1])
if ARGV[1] ~= 'quiet' then return {'pushed', length} end
