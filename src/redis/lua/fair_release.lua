-- Makes the owner's count exactly n, which is lower than before. 0 ends the hold, gives up the owner's place in
-- the queue, and wakes the first waiter. A repeat changes nothing. The lock's time to live stays as it is.
--
-- KEYS: lock, queue, expiry, alive
-- ARGV: owner, n, message, command that publishes, channel, how long the place was to be kept in ms[, prefix of the
--       holders' descriptions[, how long the owner had waited in ms if that was noted]]
-- Returns integer: done
--         {'next', waiter}: done; it is this waiter's turn, and it was woken
--         {'gone', holder}: the owner does not hold the lock; the holder may be ''
--         {'warning', what, error, one of these}: the queue, the message or the description failed; all else was done
--+ -- include: history
-- include: try
local key, queue, expiry, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local me, n, message, publish, channel, wait, descriptions, waited = unpack(ARGV)
if n ~= '0' then
	if redis.call('hexists', key, me) == 0 then
		return {'gone', redis.call('hlen', key) == 1 and redis.call('hkeys', key)[1] or ''}
	end
	-- include: allow_writes
	redis.call('hset', key, me, n)
	return 0
end
-- An error in the queue must not keep the hold from being released, nor the other way round.
local removed = redis.pcall('hdel', key, me)
local held = removed == 1
-- include: now
-- include: call

-- The waiters after this one have one less to wait for, but none of them has its turn before the present hold has
-- ended.
local function leave_queue()
	if redis.call('zrem', expiry, me) == 0 then
		return false
	end
	local is_after, ttl = false, math.max(call('pttl', key) or 0, 0)
	for _, waiter in ipairs(redis.call('lrange', queue, 0, -1)) do
		local old = is_after and tonumber(call('zscore', expiry, waiter) or '')
		if old then
			local least = math.min(old, now + ttl + tonumber(wait))
			redis.call('zadd', expiry, string.format('%.0f', math.max(old - tonumber(wait), least)), waiter)
		end
		is_after = is_after or waiter == me
	end
	redis.call('zrem', alive, me)
	redis.call('lrem', queue, 0, me)
	return true
end

local function find_first()
	-- include: first_in_queue
	return first
end

local was_queued, first = false, nil
local fine, failure = pcall(function()
	was_queued = leave_queue()
	first = find_first()
	if not first then
		call('del', alive) -- entries of waiters that Java has removed from the queue
	end
end)
if not fine then
	warning = {'warning', 'queue', type(failure) == 'table' and failure.err or failure}
end
if type(removed) == 'table' then
	return removed
end
if (held or was_queued) and call('exists', key) ~= 1 then
	if first then
		try(publish, channel .. ':' .. first, message)
	elseif held then
		try(publish, channel, message)
	end
end
if held then
	--+ keep_end(me)
	if descriptions then
		try('del', descriptions .. ':' .. me)
	end
	return reply(first and {'next', first} or 1)
end
-- include: end_wait
--+ keep_gone(me)
return reply({'gone', redis.call('hlen', key) == 1 and redis.call('hkeys', key)[1] or ''})
