-- Makes a semaphore if there is none, and wakes waiters. A repeat of a request that did changes
-- nothing.
--
-- KEYS: semaphore, channel, record
-- ARGV: permits, request id, 1 for a repeat, ms to remember the request,
--       ms that the semaphore lasts, 0 for ever
-- Returns 1: made, 0: the key was there already
local key, id = KEYS[1], ARGV[2]
local record = ARGV[3] == '1' and redis.call('get', KEYS[3])
if record and string.sub(record, 1, #id + 1) == id .. ' ' then
	return tonumber(string.sub(record, #id + 2))
end
if redis.call('exists', key) == 1 then
	return 0
end
if ARGV[5] == '0' then
	redis.call('set', key, ARGV[1])
else
	redis.call('set', key, ARGV[1], 'px', ARGV[5])
end
redis.call('publish', KEYS[2], ARGV[1])
redis.call('set', KEYS[3], id .. ' 1', 'px', ARGV[4])
return 1
