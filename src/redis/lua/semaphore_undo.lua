-- Gives back what a request took of a semaphore, if its record is still there, and wakes waiters.
--
-- KEYS: semaphore, channel, record
-- ARGV: request id
-- Returns 1: given back
--         {'gone', ''}: the request took nothing, or its record is gone
--         {'conflict', why}: the key is no semaphore; nothing was changed
local key, id = KEYS[1], ARGV[1]
local record = redis.call('get', KEYS[3])
if not record or string.sub(record, 1, #id + 1) ~= id .. ' ' then
	return {'gone', ''}
end
local value = redis.call('get', key)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
local total = redis.call('incrby', key, string.sub(record, #id + 2))
redis.call('publish', KEYS[2], string.format('%.0f', total))
redis.call('del', KEYS[3])
return 1
