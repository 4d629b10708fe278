-- Tells the state of a lock.
--
-- KEYS: lock
-- ARGV: owner
-- Returns {PTTL, -2 if the lock is free; the owner's count; the holder, or ''}
--         {'conflict', why}: the key is no lock
local key = KEYS[1]
local count = tonumber(redis.call('hget', key, ARGV[1])) or 0
local fields = redis.call('hlen', key)
local holder = ''
if fields == 1 then
	local held = redis.call('hgetall', key)
	if not (string.find(held[1], ':', 1, true) and tonumber(held[2])) then
		return {'conflict', 'the key is a hash, but no lock'}
	end
	holder = held[1]
elseif fields > 1 then
	local mode = redis.call('hget', key, 'mode')
	if mode ~= 'read' and mode ~= 'write' then
		return {'conflict', 'the key is a hash, but no lock'}
	end
end
return {redis.call('pttl', key), count, holder}
