-- Removes a fair lock regardless of the holder, and wakes the first waiter of the queue.
--
-- KEYS: lock, queue, expiry, alive
-- ARGV: message, command that publishes, channel
-- Returns 1: removed, 0: there was none
--         {'conflict', why}: the key is not a lock of this kind; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done
--+ -- include: history
-- include: try
local key, queue, expiry, alive, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[3]
local fields = redis.call('hlen', key)
if fields == 0 then
	return 0
end
-- include: find_holder
-- include: remove_lock
-- include: now
-- include: call
-- include: first_in_queue
try(ARGV[2], first and channel .. ':' .. first or channel, ARGV[1])
return reply(1)
