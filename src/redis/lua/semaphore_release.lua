-- Gives permits to a semaphore and wakes waiters. A repeat of a request that did changes nothing.
--
-- KEYS: semaphore, channel, record
-- ARGV: permits, request id, ms to remember the request,
--       1 if the semaphore must be there already
-- Returns 1: done, 0: there is no such semaphore
--         {'conflict', why}: the key is no semaphore; nothing was changed
--         {'warning', command, error, one of these}: the message failed, the rest is done
-- include: try
local key, record, id = KEYS[1], KEYS[3], ARGV[2]
-- include: record
if answer then
	return tonumber(answer)
end
local value = redis.call('get', key)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
-- On a full server this is allowed, and lets the rest be allowed too.
redis.call('pexpire', record, ARGV[3])
if not value and ARGV[4] == '1' then
	redis.call('set', record, id .. ' 0', 'px', ARGV[3])
	return 0
end
redis.call('set', record, id .. ' 1', 'px', ARGV[3])
local total = redis.call('incrby', key, ARGV[1])
try('publish', KEYS[2], string.format('%.0f', total))
return reply(1)
