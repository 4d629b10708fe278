-- Makes the owner's count exactly n, and the lock last at least for the lease. A free lock goes to the first
-- waiter of the queue, or to any owner if the queue is empty; an owner that does not get the lock joins the queue.
-- A repeat changes nothing. Only n = 1 can take a free lock.
--
-- KEYS: lock, queue, expiry (until when each waiter keeps its place, in ms since the epoch), alive (until when each
--       of Holdfast's waiters counts as alive)[, token, if the grant is to have one]
-- ARGV: lease in ms, owner, n, how long the place is kept in ms or 0 if none is wanted, how long a waiter that does not
--       ask counts as alive in ms[, prefix of the holders' descriptions, the first three lines of the owner's description,
--       its last line[, for how long it has waited in ms if that is to be noted]]
-- Returns nil or the token: granted
--         integer: not granted; the lock's PTTL, which is -2 if the lock is free and it is another waiter's turn
--         {'busy', PTTL, 'rw'}: held as a read-write lock
--         {'gone', holder}: n > 1, but the owner does not hold the lock; the holder may be ''
--         {'conflict', why}: the key is not a lock; nothing was changed
--         {'warning', command, error, one of these}: the description could not be written
--+ -- include: history
local key, queue, expiry, alive, token = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local lease, me, n, wait, alive_ms, descriptions, about, text, waited = unpack(ARGV)
if redis.call('hexists', key, me) == 1 then
	redis.call('hset', key, me, n)
	-- include: keep_hold
end
local fields = redis.call('hlen', key)
if n ~= '1' then
	return {'gone', fields == 1 and redis.call('hkeys', key)[1] or ''}
end
local mode = fields > 1 and redis.call('hget', key, 'mode')
local is_rw = mode == 'read' or mode == 'write'
-- include: find_holder
if fields > 0 and not holder and not is_rw then
	return {'conflict', 'the key holds a hash that is not a lock'}
end
-- include: now
-- include: call
local ttl = redis.call('pttl', key)
-- A waiter that asks is alive, and keeps its place however long the lock is held.
local mine = wait ~= '0' and redis.call('zscore', expiry, me)
if mine and tonumber(mine) < now + math.max(ttl, 0) + tonumber(wait) then
	redis.call('zadd', expiry, string.format('%.0f', now + math.max(ttl, 0) + tonumber(wait)), me)
end
if mine then
	-- include: stay_alive
end
-- include: first_in_queue
if fields == 0 and (not first or first == me) then
	local number
	if token then
		-- include: next_token
	end
	redis.call('lpop', queue)
	redis.call('zrem', expiry, me)
	redis.call('zrem', alive, me)
	-- The other waiters have one less to wait for, but none of them has its turn before this hold has
	-- ended.
	local waiters = redis.call('zrange', expiry, 0, -1, 'withscores')
	for i = 1, #waiters, 2 do
		local old = tonumber(waiters[i + 1])
		local least = math.min(old, now + tonumber(lease) + tonumber(wait))
		redis.call('zadd', expiry, string.format('%.0f', math.max(old - tonumber(wait), least)), waiters[i])
	end
	redis.call('hset', key, me, '1')
	redis.call('pexpire', key, lease)
	--+ keep_grant(me, number, about, text)
	-- include: end_wait
	-- include: grant
end
if wait ~= '0' and not call('zscore', expiry, me) then
	local last = call('lindex', queue, -1)
	local last_ms = last and call('zscore', expiry, last)
	local from = last_ms and tonumber(last_ms) or now + ttl
	-- The waiters that were removed may have been the last ones. A waiter without an expiry has no place.
	if not (call('rpush', queue, me) and call('zadd', expiry, string.format('%.0f', from + tonumber(wait)), me)) then
		return redis.error_reply('TRYAGAIN the slot of the lock is being moved')
	end
	-- include: stay_alive
end
-- include: note_wait
if is_rw then
	return {'busy', ttl, 'rw'}
end
return ttl
