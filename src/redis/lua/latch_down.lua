-- Counts a latch down, and opens it at zero. A repeat of a request that did changes nothing.
--
-- KEYS: latch, channel, record
-- ARGV: request id, 1 for a repeat, ms to remember the request
-- Returns integer: what is left, 0 if the latch is open or there is none
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
local left = redis.call('decr', key)
if left <= 0 then
	redis.call('del', key)
end
if left == 0 then
	redis.call('publish', KEYS[2], '0')
end
left = math.max(left, 0)
redis.call('set', KEYS[3], id .. ' ' .. string.format('%.0f', left), 'px', ARGV[3])
return left
