-- Removes a read-write lock if it is held in this mode, regardless of the holder, and wakes the waiters.
--
-- KEYS: lock
-- ARGV: 'read' or 'write', message, command that publishes, channel
-- Returns 1: removed, 0: it was not held in this mode
--         {'conflict', why}: the key is not a lock of this kind; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done
--+ -- include: history
-- include: try
local key = KEYS[1]
local mode = redis.call('hget', key, 'mode')
if mode ~= ARGV[1] then
	if mode ~= 'read' and mode ~= 'write' and redis.call('exists', key) == 1 then
		return {'conflict', 'the key holds a hash that is not a lock of this kind'}
	end
	return 0
end
--+ local fields = redis.call('hkeys', key)
redis.call('del', key)
--+ for _, field in ipairs(fields) do
--+ 	if field ~= 'mode' then
--+ 		keep_forced(field)
--+ 	end
--+ end
try(ARGV[3], ARGV[4], ARGV[2])
return reply(1)
