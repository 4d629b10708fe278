-- Takes all permits of a semaphore, which then lasts for ever. A repeat of a request that did
-- takes nothing.
--
-- KEYS: semaphore, record
-- ARGV: request id, ms to remember the request
-- Returns integer: how many there were; it may be below zero
--         {'conflict', why}: the key is no semaphore; nothing was changed
local key, record, id = KEYS[1], KEYS[2], ARGV[1]
-- include: record
if answer then
	return tonumber(answer)
end
local value = redis.call('get', key)
if not value then
	redis.pcall('set', record, id .. ' 0', 'px', ARGV[2])
	return 0
end
if not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
redis.call('set', record, id .. ' ' .. value, 'px', ARGV[2])
redis.call('set', key, 0)
return tonumber(value)
