-- Removes a latch and wakes the waiters. A repeat of a request that was done changes nothing.
--
-- KEYS: latch, record
-- ARGV: request id, how long the request is remembered in ms, command that publishes, channel
-- Returns 1: removed, 0: there was none
--         {'conflict', why}: the key is not a latch; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done
-- include: try
local key, record, id = KEYS[1], KEYS[2], ARGV[1]
-- include: record
if answer then
	return tonumber(answer)
end
-- include: check_number
if not value then
	redis.pcall('set', record, id .. ' 0', 'px', ARGV[2])
	return 0
end
-- A full server lets a script write if its first write needs no memory.
redis.call('pexpire', record, ARGV[2])
redis.call('set', record, id .. ' 1', 'px', ARGV[2])
redis.call('del', key)
try(ARGV[3], ARGV[4], '1')
return reply(1)
