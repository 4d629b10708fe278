-- Tells how long a permit lasts.
--
-- KEYS: permits, their ends, channel
-- ARGV: id
-- Returns integer: ms, -1 for ever
--         {'gone', ''}: the permit is not there or its time was over
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
local till = tonumber(redis.call('zscore', ends, ARGV[1]))
if not till then
	return reply({'gone', ''})
end
if till >= 922337203685477 then
	return reply(-1)
end
return reply(till - now)
