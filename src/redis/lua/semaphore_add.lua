-- Adds permits to a semaphore, or takes them away below zero, and wakes waiters. It then lasts for
-- ever. A repeat of a request that was done changes nothing.
--
-- KEYS: semaphore, channel, record
-- ARGV: permits, request id, 1 for a repeat, ms to remember the request
-- Returns 1: done
--         {'conflict', why}: the key is no semaphore; nothing was changed
local key, id = KEYS[1], ARGV[2]
local record = ARGV[3] == '1' and redis.call('get', KEYS[3])
if record and string.sub(record, 1, #id + 1) == id .. ' ' then
	return tonumber(string.sub(record, #id + 2))
end
local value = redis.call('get', key)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
local total = redis.call('incrby', key, ARGV[1])
redis.call('persist', key)
redis.call('publish', KEYS[2], string.format('%.0f', total))
redis.call('set', KEYS[3], id .. ' 1', 'px', ARGV[4])
return 1
