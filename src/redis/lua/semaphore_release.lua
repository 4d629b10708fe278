-- Gives permits to a semaphore and wakes waiters. A repeat of a request that was done changes nothing.
--
-- KEYS: semaphore, record
-- ARGV: permits, request id, how long the request is remembered in ms, 1 if the semaphore must exist already, command
--       that publishes, channel
-- Returns 1: done, 0: the semaphore does not exist
--         {'conflict', why}: the key is not a semaphore; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done
-- include: try
local key, record, id = KEYS[1], KEYS[2], ARGV[2]
-- include: record
if answer then
	return tonumber(answer)
end
-- include: check_number
-- A full server lets a script write if its first write needs no memory.
redis.call('pexpire', record, ARGV[3])
if not value and ARGV[4] == '1' then
	redis.call('set', record, id .. ' 0', 'px', ARGV[3])
	return 0
end
redis.call('set', record, id .. ' 1', 'px', ARGV[3])
local total = redis.call('incrby', key, ARGV[1])
try(ARGV[5], ARGV[6], string.format('%.0f', total))
return reply(1)
