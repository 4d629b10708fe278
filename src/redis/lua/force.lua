-- Removes a lock, whoever holds it, and wakes the waiters.
--
-- KEYS: lock, channel
-- ARGV: message, '' if nobody is to be woken
-- Returns 1: removed, 0: there was none
--         {'conflict', why}: the key is no lock of this kind; nothing was changed
--         {'warning', command, error, one of these}: the message failed, the rest is done
-- include: try
local key = KEYS[1]
if redis.call('exists', key) == 0 then
	return 0
end
local held = redis.call('hlen', key) == 1 and redis.call('hgetall', key)
if not (held and string.find(held[1], ':', 1, true) and tonumber(held[2])) then
	return {'conflict', 'the key is a hash, but no lock of this kind'}
end
redis.call('del', key)
if ARGV[1] ~= '' then
	try('publish', KEYS[2], ARGV[1])
end
return reply(1)
