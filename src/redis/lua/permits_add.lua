-- Adds permits and wakes waiters, or takes them away below zero. The key then lasts for ever.
-- A repeat of a request that was done changes nothing.
--
-- KEYS: permits, channel, record
-- ARGV: permits, request id, 1 for a repeat, ms to remember the request
-- Returns 1: done
--         {'conflict', why}: the key holds no permits; nothing was changed
local available, id = KEYS[1], ARGV[2]
local record = ARGV[3] == '1' and redis.call('get', KEYS[3])
if record and string.sub(record, 1, #id + 1) == id .. ' ' then
	return tonumber(string.sub(record, #id + 2))
end
local value = redis.call('get', available)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
redis.call('incrby', available, ARGV[1])
redis.call('persist', available)
if tonumber(ARGV[1]) > 0 then
	redis.call('publish', KEYS[2], ARGV[1])
end
redis.call('set', KEYS[3], id .. ' 1', 'px', ARGV[4])
return 1
