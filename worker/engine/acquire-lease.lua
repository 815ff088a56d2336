-- Claims a query for one who wants to ask the providers on behalf of all who search for the same; or tells what is known.
-- KEYS: the query's record.  ARGV: 1 a token of whoever claims, 2 ms until the claim lapses unless it is renewed,
--   3 since when (ms) an answer may have come, 4 whose failure counts as one's own, or ''.
-- Returns {'yours'}, {'asked', whose claim stands}, {'answered', answer, since when (ms)} or {'failed', failure, since when (ms)}.
local asker, answer, at, failure, failedBy =
  unpack(redis.call('HMGET', KEYS[1], 'asker', 'answer', 'at', 'failure', 'failedBy'))
if answer and tonumber(at) >= tonumber(ARGV[3]) then return {'answered', answer, at} end
if asker then
  redis.call('HSET', KEYS[1], 'awaited', '1')
  return {'asked', asker}
end
if failure and failedBy == ARGV[4] then return {'failed', failure, at} end
-- 'awaited' stays where a claim was abandoned: whoever waited for that one still waits.
redis.call('HDEL', KEYS[1], 'answer', 'at', 'failure', 'failedBy')
redis.call('HSET', KEYS[1], 'asker', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'yours'}
