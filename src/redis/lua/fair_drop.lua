-- Removes a waiter from the queue of a fair lock, whichever client it belongs to. If the lock is free, the waiter
-- that is first then is woken.
--
-- KEYS: lock, queue, expiry, channel, alive
-- ARGV: message, waiter
-- Returns 1: removed, 0: it was not in the queue
--         {'warning', command, error, one of these}: the message could not be published; all else was done
-- include: try
local key, queue, expiry, channel, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local removed = redis.call('lrem', queue, 0, ARGV[2])
redis.call('zrem', expiry, ARGV[2])
redis.call('zrem', alive, ARGV[2])
if removed == 0 then
	return 0
end
-- include: now
-- include: first_in_queue
if first and redis.call('exists', key) == 0 then
	try('publish', channel .. ':' .. first, ARGV[1])
end
return reply(1)
