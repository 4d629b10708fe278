-- Returns how long a permit lasts.
--
-- KEYS: permits, their expiry
-- ARGV: id, command that publishes, channel
-- Returns integer: ms, -1 without an expiry
--         {'gone', ''}: the permit does not exist or has expired
--         {'conflict', why}: the key does not hold permits; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done

-- include: try
-- include: call
-- include: give_back_expired

local key, expiry = KEYS[1], KEYS[2]
-- include: check_number
-- include: now
give_back_expired(key, expiry, ARGV[2], ARGV[3], now, -1)
local expires = tonumber(call('zscore', expiry, ARGV[1]) or '')
if not expires then
	return reply({'gone', ''})
end
if expires >= 922337203685477 then
	return reply(-1)
end
return reply(expires - now)
