-- Adds permits and wakes waiters, or takes them away, even below zero. The key then has no expiry. A repeat of a
-- request that was done changes nothing.
--
-- KEYS: permits, record
-- ARGV: permits, request id, how long the request is remembered in ms, command that publishes, channel
-- Returns 1: done
--         {'conflict', why}: the key does not hold permits; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done
-- include: try
local key, record, id = KEYS[1], KEYS[2], ARGV[2]
-- include: record
if answer then
	return tonumber(answer)
end
-- include: check_number
redis.call('set', record, id .. ' 1', 'px', ARGV[3])
redis.call('incrby', key, ARGV[1])
try('persist', key)
if tonumber(ARGV[1]) > 0 then
	try(ARGV[4], ARGV[5], ARGV[1])
end
return reply(1)
