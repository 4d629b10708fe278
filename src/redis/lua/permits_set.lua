-- Sets the number of permits, those in use included, and wakes waiters if that is a change. A repeat of a request
-- that was done changes nothing.
--
-- KEYS: permits, record, their expiry
-- ARGV: number of permits, request id, how long the request is remembered in ms, command that publishes, channel
-- Returns 1: done
--         {'conflict', why}: the key does not hold permits; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done
-- include: try
local key, record, expiry, count, id = KEYS[1], KEYS[2], KEYS[3], tonumber(ARGV[1]), ARGV[2]
-- include: record
if answer then
	return tonumber(answer)
end
-- include: check_number
local total = tonumber(value or '0') + redis.call('zcount', expiry, 0, '+inf')
redis.call('set', record, id .. ' 1', 'px', ARGV[3])
if not value then
	redis.call('set', key, ARGV[1])
elseif total ~= count then
	redis.call('incrby', key, string.format('%.0f', count - total))
end
if not value or total ~= count then
	try(ARGV[4], ARGV[5], ARGV[1])
end
return reply(1)
