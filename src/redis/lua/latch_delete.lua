-- Removes a latch, and tells the waiters. A repeat of a request that did changes nothing.
--
-- KEYS: latch, channel, record
-- ARGV: request id, ms to remember the request
-- Returns 1: removed, 0: there was none
--         {'conflict', why}: the key is no latch; nothing was changed
--         {'warning', command, error, one of these}: the message failed, the rest is done
-- include: try
local key, record, id = KEYS[1], KEYS[3], ARGV[1]
-- include: record
if answer then
	return tonumber(answer)
end
local value = redis.call('get', key)
if not value then
	redis.pcall('set', record, id .. ' 0', 'px', ARGV[2])
	return 0
end
if not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
-- On a full server this is allowed, and lets the rest be allowed too.
redis.call('pexpire', record, ARGV[2])
redis.call('set', record, id .. ' 1', 'px', ARGV[2])
redis.call('del', key)
try('publish', KEYS[2], '1')
return reply(1)
