-- Takes all permits of a semaphore, which then lasts for ever. A repeat of a request that did
-- takes nothing.
--
-- KEYS: semaphore, record
-- ARGV: request id, 1 for a repeat, ms to remember the request
-- Returns integer: how many there were; it may be below zero
--         {'conflict', why}: the key is no semaphore; nothing was changed
local key, id = KEYS[1], ARGV[1]
local record = ARGV[2] == '1' and redis.call('get', KEYS[2])
if record and string.sub(record, 1, #id + 1) == id .. ' ' then
	return tonumber(string.sub(record, #id + 2))
end
local value = redis.call('get', key)
if not value then
	return 0
end
if not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
redis.call('set', key, 0)
redis.call('set', KEYS[2], id .. ' ' .. value, 'px', ARGV[3])
return tonumber(value)
