-- Takes permits of a semaphore. A repeat of a request that took them takes nothing.
--
-- KEYS: semaphore, record
-- ARGV: permits, request id, 1 for a repeat, ms to remember the request
-- Returns nil: granted
--         -1: there are too few, and nobody knows for how long
--         {'conflict', why}: the key is no semaphore; nothing was changed
local key, id = KEYS[1], ARGV[2]
local record = ARGV[3] == '1' and redis.call('get', KEYS[2])
if record and string.sub(record, 1, #id + 1) == id .. ' ' then
	return nil
end
local value = redis.call('get', key)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
if not value or tonumber(value) < tonumber(ARGV[1]) then
	return -1
end
redis.call('decrby', key, ARGV[1])
redis.call('set', KEYS[2], id .. ' ' .. ARGV[1], 'px', ARGV[4])
return nil
