-- Sets how many permits there are, those in use included, and wakes waiters if that is new.
--
-- KEYS: permits, channel, their ends
-- ARGV: how many
-- Returns 1: done
--         {'conflict', why}: the key holds no permits; nothing was changed
local available, ends, count = KEYS[1], KEYS[3], tonumber(ARGV[1])
local value = redis.call('get', available)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
if not value then
	redis.call('set', available, ARGV[1])
	redis.call('publish', KEYS[2], ARGV[1])
	return 1
end
local total = tonumber(value) + redis.call('zcount', ends, 0, '+inf')
if total ~= count then
	redis.call('incrby', available, string.format('%.0f', count - total))
	redis.call('publish', KEYS[2], ARGV[1])
end
return 1
