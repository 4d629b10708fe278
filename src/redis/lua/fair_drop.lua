-- Removes a waiter from the queue of a fair lock, whichever client it belongs to. If the lock is free, the waiter
-- that is first then is woken.
--
-- KEYS: lock, queue, expiry, alive
-- ARGV: message, command that publishes, channel, waiter
-- Returns 1: removed, 0: it was not in the queue
--         {'warning', command, error, one of these}: the message could not be published; all else was done
-- include: try
local key, queue, expiry, alive, waiter = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[4]
local removed = redis.call('lrem', queue, 0, waiter)
redis.call('zrem', expiry, waiter)
redis.call('zrem', alive, waiter)
if removed == 0 then
	return 0
end
-- include: now
-- include: call
-- include: first_in_queue
if first and redis.call('exists', key) == 0 then
	try(ARGV[2], ARGV[3] .. ':' .. first, ARGV[1])
end
return reply(1)
