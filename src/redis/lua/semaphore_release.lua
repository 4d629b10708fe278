-- Gives permits to a semaphore and wakes waiters. A repeat of a request that did changes nothing.
--
-- KEYS: semaphore, channel, record
-- ARGV: permits, request id, 1 for a repeat, ms to remember the request,
--       1 if the semaphore must be there already
-- Returns 1: done, 0: there is no such semaphore
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
if not value and ARGV[5] == '1' then
	return 0
end
local total = redis.call('incrby', key, ARGV[1])
redis.call('publish', KEYS[2], string.format('%.0f', total))
redis.call('set', KEYS[3], id .. ' 1', 'px', ARGV[4])
return 1
