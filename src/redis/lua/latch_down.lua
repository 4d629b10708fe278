-- Counts a latch down, and opens it at zero. A repeat of a request that did changes nothing.
--
-- KEYS: latch, channel, record
-- ARGV: request id, ms to remember the request
-- Returns integer: what is left, 0 if the latch is open or there is none
--         {'conflict', why}: the key is no latch; nothing was changed
--         {'warning', command, error, one of these}: the message failed, the rest is done
-- include: try
local key, record, id = KEYS[1], KEYS[3], ARGV[1]
-- include: record
if answer then
	return tonumber(answer)
end
local value = redis.call('get', key)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
local left = tonumber(value or '0') - 1
-- On a full server this is allowed, and lets the rest be allowed too.
redis.call('pexpire', record, ARGV[2])
redis.call('set', record, id .. ' ' .. string.format('%.0f', math.max(left, 0)), 'px', ARGV[2])
if left > 0 then
	redis.call('decr', key)
elseif value then
	redis.call('del', key)
end
if value and left == 0 then
	try('publish', KEYS[2], '0')
end
return reply(math.max(left, 0))
