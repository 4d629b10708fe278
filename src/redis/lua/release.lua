-- Makes the owner's hold count exactly n, lower than it was; 0 ends the hold and wakes the waiters.
-- A repeat changes nothing. The lock's time to live stays as it is.
--
-- KEYS: lock, channel[, what the holders' descriptions begin with]
-- ARGV: owner, n, message, '' if nobody is to be woken
-- Returns integer: done, and so many were told that it is free
--         {'gone', holder}: the owner holds nothing here; the holder may be ''
local key, me, n = KEYS[1], ARGV[1], ARGV[2]
if n == '0' then
	if redis.call('hdel', key, me) == 1 then
		local told = 0
		if ARGV[3] ~= '' and redis.call('exists', key) == 0 then
			told = redis.call('publish', KEYS[2], ARGV[3])
		end
		if KEYS[3] then
			redis.call('del', KEYS[3] .. ':' .. me)
		end
		return told
	end
elseif redis.call('hexists', key, me) == 1 then
	redis.call('hset', key, me, n)
	return 0
end
return {'gone', redis.call('hlen', key) == 1 and redis.call('hkeys', key)[1] or ''}
