-- Makes the owner's count exactly n, which is lower than before; 0 ends the hold and wakes the waiters. A repeat
-- changes nothing. The lock's time to live stays as it is.
--
-- KEYS: lock
-- ARGV: owner, n, message or '' to wake nobody, command that publishes, channel[, prefix of the holders' descriptions[,
--       how long the owner had waited in ms if that was noted]]
-- Returns integer: done; the number of clients that received the message
--         {'gone', holder}: the owner does not hold the lock; the holder may be ''
--         {'warning', command, error, one of these}: the message or the description failed; all else was done
--+ -- include: history
local key = KEYS[1]
local me, n, message, publish, channel, descriptions, waited = unpack(ARGV)
if n == '0' then
	if redis.call('hdel', key, me) == 1 then
		local received = 0
		-- A node of a Cluster whose slot is being moved refuses a key that does not exist any more.
		if message ~= '' and redis.pcall('exists', key) ~= 1 then
			received = redis.pcall(publish, channel, message)
		end
		local note = descriptions and redis.pcall('del', descriptions .. ':' .. me)
		--+ keep_end(me)
		if type(received) == 'table' then
			return {'warning', string.lower(publish), received.err, 0}
		elseif type(note) == 'table' then
			return {'warning', 'del', note.err, received}
		--+ elseif unkept then
		--+ 	return {'warning', 'xadd', unkept, received}
		end
		return received
	end
	-- include: end_wait
	--+ keep_gone(me)
elseif redis.call('hexists', key, me) == 1 then
	-- include: allow_writes
	redis.call('hset', key, me, n)
	return 0
end
return {'gone', redis.call('hlen', key) == 1 and redis.call('hkeys', key)[1] or ''}
