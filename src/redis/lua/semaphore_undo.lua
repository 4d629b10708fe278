-- Gives back what a request took of a semaphore, and wakes waiters. The record then says that it took nothing, so
-- that the request does nothing if it arrives after this.
--
-- KEYS: semaphore, record
-- ARGV: request id, how long that is remembered in ms, command that publishes, channel
-- Returns 1: given back
--         {'gone', ''}: the request took nothing
--         {'conflict', why}: the key is not a semaphore; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done
-- include: try
local key, record, id = KEYS[1], KEYS[2], ARGV[1]
-- include: record
-- include: check_number
-- A full server lets a script write if its first write needs no memory.
redis.call('pexpire', record, ARGV[2])
redis.call('set', record, id .. ' 0', 'px', ARGV[2])
local taken = tonumber(answer or '0')
if taken == 0 then
	return {'gone', ''}
end
local total = redis.call('incrby', key, taken)
try(ARGV[3], ARGV[4], string.format('%.0f', total))
return reply(1)
