-- Adds permits to a semaphore, or takes them away below zero, and wakes waiters. It then lasts for
-- ever. A repeat of a request that was done changes nothing.
--
-- KEYS: semaphore, channel, record
-- ARGV: permits, request id, ms to remember the request
-- Returns 1: done
--         {'conflict', why}: the key is no semaphore; nothing was changed
--         {'warning', command, error, one of these}: the message failed, the rest is done
-- include: try
local key, record, id = KEYS[1], KEYS[3], ARGV[2]
-- include: record
if answer then
	return tonumber(answer)
end
local value = redis.call('get', key)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
redis.call('set', record, id .. ' 1', 'px', ARGV[3])
local total = redis.call('incrby', key, ARGV[1])
try('persist', key)
try('publish', KEYS[2], string.format('%.0f', total))
return reply(1)
