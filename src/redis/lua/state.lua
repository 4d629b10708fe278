-- Returns the state of a lock.
--
-- KEYS: lock
-- ARGV: owner
-- Returns {PTTL, -2 if the lock is free; the owner's count; the holder, or ''}
--         {'conflict', why}: the key is not a lock
local key = KEYS[1]
local count = tonumber(redis.call('hget', key, ARGV[1])) or 0
local fields = redis.call('hlen', key)
-- include: find_holder
local mode = fields > 1 and redis.call('hget', key, 'mode')
if fields > 0 and not holder and mode ~= 'read' and mode ~= 'write' then
	return {'conflict', 'the key holds a hash that is not a lock'}
end
return {redis.call('pttl', key), count, holder or ''}
