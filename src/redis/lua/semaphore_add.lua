-- Adds permits to a semaphore, or takes them away, even below zero, and wakes waiters. The semaphore then has no
-- expiry. A repeat of a request that was done changes nothing.
--
-- KEYS: semaphore, record
-- ARGV: permits, request id, how long the request is remembered in ms, command that publishes, channel
-- Returns 1: done
--         {'conflict', why}: the key is not a semaphore; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done
-- include: try
local key, record, id = KEYS[1], KEYS[2], ARGV[2]
-- include: record
if answer then
	return tonumber(answer)
end
-- include: check_number
redis.call('set', record, id .. ' 1', 'px', ARGV[3])
local total = redis.call('incrby', key, ARGV[1])
try('persist', key)
try(ARGV[4], ARGV[5], string.format('%.0f', total))
return reply(1)
