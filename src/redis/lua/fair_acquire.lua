-- Makes the owner's hold count exactly n and lets the lock last at least the lease; a free lock goes
-- to the first of the queue, or to anyone if there is none. Who does not get it is queued.
-- A repeat changes nothing. Only n = 1 may take a free lock.
--
-- KEYS: lock, queue, ends (of the queue's places, in ms since the epoch), alive (until when each of our waiters
--       counts as alive)[, what the holders' descriptions begin with][, token if the grant is to have one]
-- ARGV: lease in ms, owner, n, how long the place is kept in ms, 0: not queued, how long a waiter that does not ask
--       counts as alive in ms[, the owner's description]
-- Returns nil: granted, {'granted', token}
--         integer: not now, the lock's PTTL, -2 if it is free and another's turn
--         {'busy', PTTL, 'rw'}: held as a read-write lock
--         {'gone', holder}: n > 1, and the owner holds nothing here; the holder may be ''
--         {'conflict', why}: the key is no lock; nothing was changed
--         {'warning', command, error, one of these}: the description could not be written
local key, queue, ends, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lease, me, n, wait = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local description = ARGV[6]
local side = description and KEYS[5]
local token = KEYS[side and 6 or 5]
if redis.call('hexists', key, me) == 1 then
	redis.call('hset', key, me, n)
	-- include: hold_again
end
local fields = redis.call('hlen', key)
if n ~= '1' then
	return {'gone', fields == 1 and redis.call('hkeys', key)[1] or ''}
end
local mode = fields > 1 and redis.call('hget', key, 'mode')
local is_rw = mode == 'read' or mode == 'write'
if fields > 1 and not is_rw then
	return {'conflict', 'the key is a hash, but no lock'}
elseif fields == 1 then
	local held = redis.call('hgetall', key)
	if not (string.find(held[1], ':', 1, true) and tonumber(held[2])) then
		return {'conflict', 'the key is a hash, but no lock'}
	end
end
-- include: now
local ttl = redis.call('pttl', key)
-- Who asks lives, and keeps its place however long the lock is held.
local mine = wait ~= '0' and redis.call('zscore', ends, me)
if mine and tonumber(mine) < now + math.max(ttl, 0) + tonumber(wait) then
	redis.call('zadd', ends, string.format('%.0f', now + math.max(ttl, 0) + tonumber(wait)), me)
end
if mine then
	-- include: show_life
end
-- include: first_in_queue
if fields == 0 and (not first or first == me) then
	local number
	if token then
		-- include: next_token
	end
	redis.call('lpop', queue)
	redis.call('zrem', ends, me)
	redis.call('zrem', alive, me)
	-- Those who stay wait for one less; but until this hold ends it is nobody's turn.
	local waiters = redis.call('zrange', ends, 0, -1, 'withscores')
	for i = 1, #waiters, 2 do
		local old = tonumber(waiters[i + 1])
		local least = math.min(old, now + tonumber(lease) + tonumber(wait))
		redis.call('zadd', ends, string.format('%.0f', math.max(old - tonumber(wait), least)), waiters[i])
	end
	redis.call('hset', key, me, 1)
	redis.call('pexpire', key, lease)
	local note = side and redis.pcall('set', side .. ':' .. me, description, 'px', lease)
	local granted = token and {'granted', number}
	return note and note.err and {'warning', 'set', note.err, granted or false} or granted
end
if wait ~= '0' and not redis.call('zscore', ends, me) then
	local last = redis.call('lindex', queue, -1)
	local last_ms = last and redis.call('zscore', ends, last)
	local from = last_ms and tonumber(last_ms) or now + ttl
	redis.call('zadd', ends, string.format('%.0f', from + tonumber(wait)), me)
	redis.call('rpush', queue, me)
	-- include: show_life
end
if is_rw then
	return {'busy', ttl, 'rw'}
end
return ttl
