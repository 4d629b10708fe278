-- Counts permits.
--
-- KEYS: permits, their ends, channel
-- ARGV: 'available', 'acquired' or 'total'
-- Returns integer: how many; there may be less than none available
--         {'conflict', why}: the key holds no permits; nothing was changed
--         {'warning', command, error, one of these}: a message failed, the rest is done

-- include: try
-- include: clean_permits

local available, ends = KEYS[1], KEYS[2]
local value = redis.call('get', available)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
-- include: now
clean(available, ends, KEYS[3], now, -1)
local acquired = redis.call('zcount', ends, 0, '+inf')
if ARGV[1] == 'acquired' then
	return reply(acquired)
end
value = redis.call('get', available)
if not value then
	return reply(0)
end
if ARGV[1] == 'total' then
	return reply(tonumber(value) + acquired)
end
return reply(tonumber(value))
