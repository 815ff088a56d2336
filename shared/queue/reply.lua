-- Appends a reply to the inbox of an API process. It also runs in a Redis that is out of memory: what was admitted is
-- answered, and the reader trims what it has read.
-- KEYS: inbox.  ARGV: 1 entries kept at most, 2 ms until an inbox without a reader expires, 3 head, 4 payload.
-- Returns nothing.
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'head', ARGV[3], 'payload', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
