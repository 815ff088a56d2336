-- Acquires the lease of a flight together with the job of its search, if there is no record of the flight. This text is put behind a
-- script of BullMQ that takes a job, which is the function take(KEYS, ARGV), and behind `leaseMs`: ms until the lease expires unless it
-- is renewed. The job names its flight, or none.
-- KEYS: those of BullMQ's script.  ARGV: likewise.
-- Returns what that script returns; for a job that is {its fields and values, its id, a number, a number}. Instead of the first number,
-- which the worker does not need, comes the token of the holder if the lease was acquired.
local taken = take(KEYS, ARGV)
if type(taken) ~= 'table' or type(taken[1]) ~= 'table' then return taken end
local job = {}
for at = 1, #taken[1], 2 do job[taken[1][at]] = taken[1][at + 1] end
local isReadable, search = pcall(cjson.decode, job.data)
local flight = isReadable and type(search) == 'table' and search.flight
if type(flight) ~= 'string' or redis.call('EXISTS', 'lease:' .. flight) == 1 then return taken end
-- No other run of a job has its number of attempts.
taken[3] = taken[2] .. ':' .. job.ats
redis.call('HSET', 'lease:' .. flight, 'holder', taken[3])
redis.call('PEXPIRE', 'lease:' .. flight, leaseMs)
return taken
