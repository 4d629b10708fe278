-- Removes a fair lock, whoever holds it, and wakes who is first in the queue.
--
-- KEYS: lock, queue, ends, channel, alive
-- ARGV: message
-- Returns 1: removed, 0: there was none
--         {'conflict', why}: the key is no lock of this kind; nothing was changed
--         {'warning', command, error, one of these}: the message failed, the rest is done
-- include: try
local key, queue, ends, channel, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
if redis.call('exists', key) == 0 then
	return 0
end
local held = redis.call('hlen', key) == 1 and redis.call('hgetall', key)
if not (held and string.find(held[1], ':', 1, true) and tonumber(held[2])) then
	return {'conflict', 'the key is a hash, but no lock of this kind'}
end
redis.call('del', key)
-- include: now
-- include: first_in_queue
try('publish', first and channel .. ':' .. first or channel, ARGV[1])
return reply(1)
