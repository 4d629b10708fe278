-- Sets how many permits there are, those in use included, and wakes waiters if that is new.
-- A repeat of a request that was done changes nothing.
--
-- KEYS: permits, channel, record, their ends
-- ARGV: how many, request id, ms to remember the request
-- Returns 1: done
--         {'conflict', why}: the key holds no permits; nothing was changed
--         {'warning', command, error, one of these}: the message failed, the rest is done
-- include: try
local available, record, ends, count, id = KEYS[1], KEYS[3], KEYS[4], tonumber(ARGV[1]), ARGV[2]
-- include: record
if answer then
	return tonumber(answer)
end
local value = redis.call('get', available)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
local total = tonumber(value or '0') + redis.call('zcount', ends, 0, '+inf')
redis.call('set', record, id .. ' 1', 'px', ARGV[3])
if not value then
	redis.call('set', available, ARGV[1])
elseif total ~= count then
	redis.call('incrby', available, string.format('%.0f', count - total))
end
if not value or total ~= count then
	try('publish', KEYS[2], ARGV[1])
end
return reply(1)
