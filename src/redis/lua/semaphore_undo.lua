-- Gives back what a request took of a semaphore, and wakes waiters. The record then says that it took
-- nothing, so that the request itself does nothing if it arrives after this.
--
-- KEYS: semaphore, channel, record
-- ARGV: request id, ms to remember that
-- Returns 1: given back
--         {'gone', ''}: the request took nothing
--         {'conflict', why}: the key is no semaphore; nothing was changed
--         {'warning', command, error, one of these}: the message failed, the rest is done
-- include: try
local key, record, id = KEYS[1], KEYS[3], ARGV[1]
-- include: record
local value = redis.call('get', key)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
-- On a full server this is allowed, and lets the rest be allowed too.
redis.call('pexpire', record, ARGV[2])
redis.call('set', record, id .. ' 0', 'px', ARGV[2])
local taken = tonumber(answer or '0')
if taken == 0 then
	return {'gone', ''}
end
local total = redis.call('incrby', key, taken)
try('publish', KEYS[2], string.format('%.0f', total))
return reply(1)
