-- Tells the state of a lock.
--
-- KEYS: lock
-- ARGV: owner
-- Returns {PTTL, -2 if the lock is free; the owner's count; the holder, or ''}
local key = KEYS[1]
local count = tonumber(redis.call('hget', key, ARGV[1])) or 0
local holder = redis.call('hlen', key) == 1 and redis.call('hkeys', key)[1] or ''
return {redis.call('pttl', key), count, holder}
