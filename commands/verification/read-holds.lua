-- Reads the holds of an organization and what its limited tokens hold.
-- KEYS: holds, limited tokens.
-- Returns both hashes, each as fields and values in turn.
return {redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2])}
