-- Removes a lock regardless of the holder, and wakes the waiters.
--
-- KEYS: lock
-- ARGV: message or '' to wake nobody, command that publishes, channel
-- Returns 1: removed, 0: there was none
--         {'conflict', why}: the key is not a lock of this kind; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done
--+ -- include: history
-- include: try
local key = KEYS[1]
local fields = redis.call('hlen', key)
if fields == 0 then
	return 0
end
-- include: find_holder
-- include: remove_lock
if ARGV[1] ~= '' then
	try(ARGV[2], ARGV[3], ARGV[1])
end
return reply(1)
