-- Sets the end of a permit anew, earlier or later.
--
-- KEYS: permits, their ends, channel
-- ARGV: id, lease in ms or -1 for ever
-- Returns 1: done
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
if not redis.call('zscore', ends, ARGV[1]) then
	return reply({'gone', ''})
end
redis.call('zrem', ends, '') -- changes nothing, and lets a full server allow what follows
local till = ARGV[2] == '-1' and 922337203685477 or now + tonumber(ARGV[2])
redis.call('zadd', ends, string.format('%.0f', till), ARGV[1])
return reply(1)
