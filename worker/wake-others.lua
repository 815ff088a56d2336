-- Sets the marker for the other workers if jobs still wait after this worker has taken some.
-- KEYS: 1 the jobs that wait, 2 those that wait by their turn, 3 the marker.  ARGV: none.
-- Returns how many jobs wait.
local waiting = redis.call('LLEN', KEYS[1]) + redis.call('ZCARD', KEYS[2])
if waiting > 0 then redis.call('ZADD', KEYS[3], 0, '0') end
return waiting
