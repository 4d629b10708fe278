-- Makes the owner's count of each value exactly n, lower than it was; 0 ends the hold and wakes the
-- waiters. A repeat changes nothing. The ends stay as they are.
--
-- KEYS: group, channel
-- ARGV: owner, n, message, hash of each value
-- Returns integer: done
--         {'gone', ''}: the owner did not hold all of them; 0 gave back those it did hold, any
--         other n changed nothing
--         {'warning', command, error, one of these}: the message failed, the rest is done
-- include: try
local key, me, n = KEYS[1], ARGV[1], ARGV[2]
local mine, all_mine = {}, true
for i = 4, #ARGV do
	if redis.call('hget', key, ARGV[i]) == me then
		table.insert(mine, ARGV[i])
	else
		all_mine = false
	end
end
if n == '0' then
	for _, value in ipairs(mine) do
		redis.call('hdel', key, value)
	end
	-- Redisson leaves these two when it takes a value whose holder has lapsed.
	for i = 4, #ARGV do
		local field = ARGV[i] .. ':' .. me
		redis.call('hdel', key, field .. ':expire_time', field .. ':lock_count')
	end
	if #mine > 0 then
		try('publish', KEYS[2], ARGV[3])
	end
end
if not all_mine then
	return reply({'gone', ''})
end
if n == '0' then
	return reply(1)
end
-- include: allow_writes
for _, value in ipairs(mine) do
	redis.call('hset', key, value .. ':' .. me .. ':lock_count', n)
end
return 0
