-- Makes the owner's hold count exactly n, lower than it was; 0 ends the hold and wakes the waiters.
-- A repeat changes nothing. The lock's time to live stays as it is.
--
-- KEYS: lock, channel[, what the holders' descriptions begin with]
-- ARGV: owner, n, message, '' if nobody is to be woken
-- Returns integer: done; how many clients received the message
--         {'gone', holder}: the owner holds nothing here; the holder may be ''
--         {'warning', command, error, one of these}: the message or the description failed, the rest is done
local key, me, n = KEYS[1], ARGV[1], ARGV[2]
if n == '0' then
	if redis.call('hdel', key, me) == 1 then
		local received = 0
		if ARGV[3] ~= '' and redis.call('exists', key) == 0 then
			received = redis.pcall('publish', KEYS[2], ARGV[3])
		end
		local note = KEYS[3] and redis.pcall('del', KEYS[3] .. ':' .. me)
		if type(received) == 'table' then
			return {'warning', 'publish', received.err, 0}
		elseif type(note) == 'table' then
			return {'warning', 'del', note.err, received}
		end
		return received
	end
elseif redis.call('hexists', key, me) == 1 then
	-- include: allow_writes
	redis.call('hset', key, me, n)
	return 0
end
return {'gone', redis.call('hlen', key) == 1 and redis.call('hkeys', key)[1] or ''}
