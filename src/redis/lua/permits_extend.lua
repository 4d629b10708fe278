-- Sets a new expiry for a permit, earlier or later than the old one.
--
-- KEYS: permits, their expiry
-- ARGV: id, lease in ms or -1 for no expiry, command that publishes, channel
-- Returns 1: done
--         {'gone', ''}: the permit does not exist or has expired
--         {'conflict', why}: the key does not hold permits; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done

-- include: try
-- include: call
-- include: give_back_expired

local key, expiry = KEYS[1], KEYS[2]
-- include: check_number
-- include: now
give_back_expired(key, expiry, ARGV[3], ARGV[4], now, -1)
if not call('zscore', expiry, ARGV[1]) then
	return reply({'gone', ''})
end
-- include: allow_permit_writes
local expires = ARGV[2] == '-1' and 922337203685477 or now + tonumber(ARGV[2])
redis.call('zadd', expiry, string.format('%.0f', expires), ARGV[1])
return reply(1)
