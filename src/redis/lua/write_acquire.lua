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
local key, lease, me, n = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local side = ARGV[4] and KEYS[2]
local token = KEYS[side and 3 or 2]
if redis.call('hexists', key, me) == 1 then
	redis.call('hset', key, me, n)
	if redis.call('pttl', key) < tonumber(lease) then
		redis.call('pexpire', key, lease)
	end
	if side and redis.call('pttl', side .. ':' .. me) < tonumber(lease) and
		redis.call('pexpire', side .. ':' .. me, lease) == 0 then
		redis.call('set', side .. ':' .. me, ARGV[4], 'px', lease)
	end
	local stored = token and redis.pcall('get', token)
	return token and {'granted', type(stored) == 'string' and string.match(stored, '^%d+$') or '0'}
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
	if side then
		redis.call('set', side .. ':' .. me, ARGV[4], 'px', lease)
	end
	return token and {'granted', number}
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
