-- Makes the writer's hold count exactly n and lets the lock last at least the lease.
-- A repeat changes nothing. Only n = 1 may take a free lock.
--
-- KEYS: lock[, what the holders' descriptions begin with][, token if the grant is to have one]
-- ARGV: lease in ms, owner (with ':write'), n[, the owner's description]
-- Returns nil: granted, {'granted', token}
--         integer: held by others, the lock's PTTL
--         {'busy', PTTL, 'lock'}: held as a lock of another kind
--         {'gone', ''}: n > 1, and the owner does not write here
--         {'conflict', why}: the key is no lock; nothing was changed
--         {'warning', command, error, one of these}: the description could not be written
local key, lease, me, n = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local description = ARGV[4]
local side = description and KEYS[2]
local token = KEYS[side and 3 or 2]
if redis.call('hexists', key, me) == 1 then
	redis.call('hset', key, me, n)
	-- include: hold_again
end
if n ~= '1' then
	return {'gone', ''}
end
if redis.call('exists', key) == 0 then
	local number
	if token then
		-- include: next_token
	end
	redis.call('hset', key, 'mode', 'write', me, 1)
	redis.call('pexpire', key, lease)
	local note = side and redis.pcall('set', side .. ':' .. me, description, 'px', lease)
	local granted = token and {'granted', number}
	return note and note.err and {'warning', 'set', note.err, granted or false} or granted
end
local ttl = redis.call('pttl', key)
local mode = redis.call('hget', key, 'mode')
if mode == 'read' or mode == 'write' then
	return ttl
end
local held = redis.call('hlen', key) == 1 and redis.call('hgetall', key)
if held and string.find(held[1], ':', 1, true) and tonumber(held[2]) then
	return {'busy', ttl, 'lock'}
end
return {'conflict', 'the key is a hash, but no lock'}
