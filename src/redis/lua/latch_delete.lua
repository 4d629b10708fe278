-- Removes a latch, and tells the waiters. A repeat of a request that did changes nothing.
--
-- KEYS: latch, channel, record
-- ARGV: request id, 1 for a repeat, ms to remember the request
-- Returns 1: removed, 0: there was none
--         {'conflict', why}: the key is no latch; nothing was changed
local key, id = KEYS[1], ARGV[1]
local record = ARGV[2] == '1' and redis.call('get', KEYS[3])
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
redis.call('del', key)
redis.call('publish', KEYS[2], '1')
redis.call('set', KEYS[3], id .. ' 1', 'px', ARGV[3])
return 1
