-- Makes the writer's hold count exactly n, lower than it was; 0 ends the hold and wakes all waiters. A
-- writer that also reads goes on reading. A repeat changes nothing. The time to live stays as it is.
--
-- KEYS: lock, channel[, what the holders' descriptions begin with]
-- ARGV: owner (with ':write'), n, message
-- Returns integer: done
--         {'gone', ''}: the owner does not write here
local key, me, n = KEYS[1], ARGV[1], ARGV[2]
if n ~= '0' then
	if redis.call('hexists', key, me) == 0 then
		return {'gone', ''}
	end
	redis.call('hset', key, me, n)
	return 0
end
if redis.call('hdel', key, me) == 0 then
	return {'gone', ''}
end
if redis.call('hlen', key) == 1 then
	redis.call('del', key)
else
	redis.call('hset', key, 'mode', 'read')
end
if KEYS[3] then
	redis.call('del', KEYS[3] .. ':' .. me)
end
redis.call('publish', KEYS[2], ARGV[3])
return 1
