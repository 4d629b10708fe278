-- Makes the owner's hold count exactly n and lets the lock last at least the lease.
-- A repeat changes nothing. Only n = 1 may take a free lock.
--
-- KEYS: lock[, what the holders' descriptions begin with][, token if the grant is to have one]
-- ARGV: lease in ms, owner, n[, the owner's description]
-- Returns nil: granted, {'granted', token}
--         integer: held by another, the lock's PTTL
--         {'busy', PTTL, 'rw'}: held as a read-write lock
--         {'gone', holder}: n > 1, and the owner holds nothing here; the holder may be ''
--         {'conflict', why}: the key is no lock; nothing was changed
--         {'warning', command, error, one of these}: the description could not be written
local key, lease, me, n = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local description = ARGV[4]
local side = description and KEYS[2]
local token = KEYS[side and 3 or 2]
if n == '1' and redis.call('exists', key) == 0 then
	local number
	if token then
		-- include: next_token
	end
	redis.call('hset', key, me, 1)
	redis.call('pexpire', key, lease)
	local note = side and redis.pcall('set', side .. ':' .. me, description, 'px', lease)
	local granted = token and {'granted', number}
	return note and note.err and {'warning', 'set', note.err, granted or false} or granted
end
if redis.call('hexists', key, me) == 1 then
	redis.call('hset', key, me, n)
	-- include: hold_again
end
local fields = redis.call('hlen', key)
if n ~= '1' then
	return {'gone', fields == 1 and redis.call('hkeys', key)[1] or ''}
end
if fields == 1 then
	local held = redis.call('hgetall', key)
	if not (string.find(held[1], ':', 1, true) and tonumber(held[2])) then
		return {'conflict', 'the key is a hash, but no lock'}
	end
else
	local mode = redis.call('hget', key, 'mode')
	if mode == 'read' or mode == 'write' then
		return {'busy', redis.call('pttl', key), 'rw'}
	end
	return {'conflict', 'the key is a hash, but no lock'}
end
return redis.call('pttl', key)
