-- Moves a hold that its owner gives up to another owner, who holds it once from now on.
-- A repeat changes nothing. Nobody is woken, since the lock was never free.
--
-- KEYS: lock[, what the holders' descriptions begin with][, token if the grant is to have one]
-- ARGV: lease in ms, the new owner, the old one[, the new owner's description]
-- Returns nil: moved, {'granted', token}
--         {'gone', holder}: neither owner holds anything here; the holder may be ''
--         {'conflict', why}: the key of the token holds no number; nothing was changed
--         {'warning', command, error, one of these}: the description could not be written
local key, lease, me, from = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local description = ARGV[4]
local side = description and KEYS[2]
local token = KEYS[side and 3 or 2]
local number
if token and redis.call('hexists', key, from) == 1 then
	-- include: next_token
end
if redis.call('hdel', key, from) == 1 then
	redis.call('hset', key, me, 1)
	redis.call('pexpire', key, lease)
	local note = side and redis.pcall('del', side .. ':' .. from) and
		redis.pcall('set', side .. ':' .. me, description, 'px', lease)
	local granted = token and {'granted', number}
	return note and note.err and {'warning', 'set', note.err, granted or false} or granted
end
if redis.call('hexists', key, me) == 1 then
	-- include: hold_again
end
return {'gone', redis.call('hlen', key) == 1 and redis.call('hkeys', key)[1] or ''}
