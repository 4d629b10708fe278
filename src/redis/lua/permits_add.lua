-- Adds permits and wakes waiters, or takes them away below zero. The key then lasts for ever.
-- A repeat of a request that was done changes nothing.
--
-- KEYS: permits, channel, record
-- ARGV: permits, request id, ms to remember the request
-- Returns 1: done
--         {'conflict', why}: the key holds no permits; nothing was changed
--         {'warning', command, error, one of these}: the message failed, the rest is done
-- include: try
local available, record, id = KEYS[1], KEYS[3], ARGV[2]
-- include: record
if answer then
	return tonumber(answer)
end
local value = redis.call('get', available)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
redis.call('set', record, id .. ' 1', 'px', ARGV[3])
redis.call('incrby', available, ARGV[1])
try('persist', available)
if tonumber(ARGV[1]) > 0 then
	try('publish', KEYS[2], ARGV[1])
end
return reply(1)
