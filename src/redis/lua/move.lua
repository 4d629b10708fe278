-- Moves a hold that its owner gives up to another owner, who holds it once from now on.
-- A repeat changes nothing. Nobody is woken, since the lock was never free.
--
-- KEYS: lock[, what the holders' descriptions begin with][, token if the grant is to have one]
-- ARGV: lease in ms, the new owner, the old one[, the new owner's description]
-- Returns nil: moved, {'granted', token}
--         {'gone', holder}: neither owner holds anything here; the holder may be ''
--         {'conflict', why}: the key of the token is none; nothing was changed
local key, lease, me, from = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local side = ARGV[4] and KEYS[2]
local token = KEYS[side and 3 or 2]
local number
if token and redis.call('hexists', key, from) == 1 then
	-- include: next_token
end
if redis.call('hdel', key, from) == 1 then
	redis.call('hset', key, me, 1)
	redis.call('pexpire', key, lease)
	if side then
		redis.call('del', side .. ':' .. from)
		redis.call('set', side .. ':' .. me, ARGV[4], 'px', lease)
	end
	return token and {'granted', number}
end
if redis.call('hexists', key, me) == 1 then
	if redis.call('pttl', key) < tonumber(lease) then
		redis.call('pexpire', key, lease)
	end
	if side and redis.call('pttl', side .. ':' .. me) < tonumber(lease) then
		redis.call('set', side .. ':' .. me, ARGV[4], 'px', lease)
	end
	local stored = token and redis.pcall('get', token)
	return token and {'granted', type(stored) == 'string' and string.match(stored, '^%d+$') or '0'}
end
return {'gone', redis.call('hlen', key) == 1 and redis.call('hkeys', key)[1] or ''}
