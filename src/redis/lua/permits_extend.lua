-- Sets a new expiry for a permit, earlier or later than the old one. A repeat of a request that was done only makes
-- it later, and a request that arrives after a later one does nothing.
--
-- KEYS: permits, their expiry
-- ARGV: id, lease in ms or -1 for no expiry, command that publishes, channel, record, request id, how long the
--       request is remembered in ms
-- Returns 1: done
--         {'gone', ''}: the permit does not exist or has expired
--         {'conflict', why}: the key does not hold permits; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done

-- include: try
-- include: call
-- include: give_back_expired

local key, expiry, record, request = KEYS[1], KEYS[2], ARGV[5], ARGV[6]
-- The record is not among the keys, because a node whose slot is being moved refuses a script if it does not exist.
-- There the request runs without it.
local recorded = redis.pcall('get', record)
local number = type(recorded) == 'string' and tonumber(string.match(recorded, ':(%d+) '))
local mine = tonumber(string.match(request, ':(%d+)$'))
if number and number > mine then
	return redis.error_reply('LATE a later request has used its record')
end
-- include: check_number
-- include: now
give_back_expired(key, expiry, ARGV[3], ARGV[4], now, -1)
local score = tonumber(call('zscore', expiry, ARGV[1]) or '')
if not score then
	return reply({'gone', ''})
end
local expires = ARGV[2] == '-1' and 922337203685477 or now + tonumber(ARGV[2])
if number == mine and score >= expires then
	return reply(1)
end
-- include: allow_permit_writes
redis.pcall('set', record, request .. ' 1', 'px', ARGV[7])
redis.call('zadd', expiry, string.format('%.0f', expires), ARGV[1])
return reply(1)
