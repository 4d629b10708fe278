-- Creates a semaphore if there is none, and wakes waiters. A repeat of a request that was done changes nothing.
--
-- KEYS: semaphore, record
-- ARGV: permits, request id, how long the request is remembered in ms, how long the semaphore lasts in ms or 0 for no
--       expiry, command that publishes, channel
-- Returns 1: created, 0: the key existed already
--         {'warning', command, error, one of these}: the message could not be published; all else was done
-- include: try
local key, record, id = KEYS[1], KEYS[2], ARGV[2]
-- include: record
-- include: create_once
if ARGV[4] == '0' then
	redis.call('set', key, ARGV[1])
else
	redis.call('set', key, ARGV[1], 'px', ARGV[4])
end
try(ARGV[5], ARGV[6], ARGV[1])
return reply(1)
