-- Makes the owner's count of each value exactly n, which is lower than before; 0 ends the hold and wakes the
-- waiters. A repeat changes nothing. The expiry of the values stays as it is.
--
-- KEYS: group
-- ARGV: owner, n, message, command that publishes, channel, hash of each value
-- Returns integer: done
--         {'gone', ''}: the owner did not hold all of the values; n = 0 gave back those that it held, any other n
--                       changed nothing
--         {'warning', command, error, one of these}: the message could not be published; all else was done
--+ -- include: history
-- include: try
-- include: call
local key, me, n = KEYS[1], ARGV[1], ARGV[2]
local mine, all_mine = {}, true
for i = 6, #ARGV do
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
	-- Redisson leaves these two fields when it takes a value whose hold has expired.
	for i = 6, #ARGV do
		local field = ARGV[i] .. ':' .. me
		call('hdel', key, field .. ':expire_time', field .. ':lock_count')
	end
	--+ if #mine > 0 then
	--+ 	keep_end(me)
	--+ else
	--+ 	keep_gone(me)
	--+ end
	if #mine > 0 then
		try(ARGV[4], ARGV[5], ARGV[3])
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
