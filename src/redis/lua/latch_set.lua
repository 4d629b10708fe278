-- Creates a latch if there is none, and wakes the waiters. A repeat of a request that was done changes nothing.
--
-- KEYS: latch, record
-- ARGV: count, request id, how long the request is remembered in ms, command that publishes, channel
-- Returns 1: created, 0: the key existed already
--         {'warning', command, error, one of these}: the message could not be published; all else was done
-- include: try
local key, record, id = KEYS[1], KEYS[2], ARGV[2]
-- include: record
if answer then
	return tonumber(answer)
end
if redis.call('exists', key) == 1 then
	redis.pcall('set', record, id .. ' 0', 'px', ARGV[3])
	return 0
end
redis.call('set', record, id .. ' 1', 'px', ARGV[3])
redis.call('set', key, ARGV[1])
try(ARGV[4], ARGV[5], '1')
return reply(1)
