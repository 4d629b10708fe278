-- Counts permits.
--
-- KEYS: permits, their expiry
-- ARGV: 'available', 'acquired' or 'total', command that publishes, channel
-- Returns integer: the number; what is available can be negative
--         {'conflict', why}: the key does not hold permits; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done

-- include: try
-- include: call
-- include: give_back_expired

local key, expiry = KEYS[1], KEYS[2]
-- include: check_number
-- include: now
give_back_expired(key, expiry, ARGV[2], ARGV[3], now, -1)
local acquired = call('zcount', expiry, 0, '+inf') or 0
if ARGV[1] == 'acquired' then
	return reply(acquired)
end
value = redis.call('get', key)
if not value then
	return reply(0)
end
if ARGV[1] == 'total' then
	return reply(tonumber(value) + acquired)
end
return reply(tonumber(value))
