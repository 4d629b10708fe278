-- Counts a latch down, and opens it at zero. A repeat of a request that did changes nothing.
--
-- KEYS: latch, channel, record
-- ARGV: request id, ms to remember the request
-- Returns integer: what is left, 0 if the latch is open or there is none
--         {'conflict', why}: the key is no latch; nothing was changed
local key, record, id = KEYS[1], KEYS[3], ARGV[1]
-- include: record
if answer then
	return tonumber(answer)
end
local value = redis.call('get', key)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
-- On a full server this is allowed, and lets the rest be allowed too.
redis.call('pexpire', record, ARGV[2])
local left = value and redis.call('decr', key) or -1
if value and left <= 0 then
	redis.call('del', key)
end
if left == 0 then
	redis.call('publish', KEYS[2], '0')
end
left = math.max(left, 0)
redis.call('set', record, id .. ' ' .. string.format('%.0f', left), 'px', ARGV[2])
return left
