-- Makes the writer's count exactly n, which is lower than before; 0 ends the hold and wakes all waiters. A writer
-- that also reads keeps its read hold. A repeat changes nothing. The time to live stays as it is.
--
-- KEYS: lock
-- ARGV: owner (with ':write'), n, message, command that publishes, channel[, prefix of the holders' descriptions[,
--       how long the owner had waited in ms if that was noted]]
-- Returns integer: done
--         {'gone', ''}: the owner has no write hold
--         {'warning', command, error, one of these}: the message or the description failed; all else was done
--+ -- include: history
-- include: try
local key = KEYS[1]
local me, n, message, publish, channel, descriptions, waited = unpack(ARGV)
if n ~= '0' then
	if redis.call('hexists', key, me) == 0 then
		return {'gone', ''}
	end
	-- include: allow_writes
	redis.call('hset', key, me, n)
	return 0
end
if redis.call('hdel', key, me) == 0 then
	-- include: end_wait
	--+ keep_gone(me)
	return {'gone', ''}
end
if redis.call('hlen', key) == 1 then
	try('del', key)
else
	try('hset', key, 'mode', 'read')
end
--+ keep_end(me)
if descriptions then
	try('del', descriptions .. ':' .. me)
end
try(publish, channel, message)
return reply(1)
