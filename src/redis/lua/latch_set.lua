-- Makes a latch if there is none, and tells the waiters. A repeat of a request that did changes
-- nothing.
--
-- KEYS: latch, channel, record
-- ARGV: count, request id, 1 for a repeat, ms to remember the request
-- Returns 1: made, 0: the key was there already
local key, id = KEYS[1], ARGV[2]
local record = ARGV[3] == '1' and redis.call('get', KEYS[3])
if record and string.sub(record, 1, #id + 1) == id .. ' ' then
	return tonumber(string.sub(record, #id + 2))
end
if redis.call('exists', key) == 1 then
	return 0
end
redis.call('set', key, ARGV[1])
redis.call('publish', KEYS[2], '1')
redis.call('set', KEYS[3], id .. ' 1', 'px', ARGV[4])
return 1
