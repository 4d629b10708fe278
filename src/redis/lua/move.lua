-- Moves a hold that its owner releases to another owner, which then holds the lock once. A repeat changes nothing.
-- Nobody is woken, since the lock was never free.
--
-- KEYS: lock[, token, if the grant is to have one]
-- ARGV: lease in ms, the new owner, the old owner[, prefix of the holders' descriptions, the first three lines
--       of the new owner's description, its last line[, for how long it has waited in ms if that was to be noted]]
-- Returns nil or the token: moved
--         {'gone', holder}: neither of them holds the lock; the holder may be ''
--         {'conflict', why}: the key of the token does not hold a number; nothing was changed
--         {'warning', command, error, one of these}: the description could not be written
--+ -- include: history
local key, token = KEYS[1], KEYS[2]
local lease, me, from, descriptions, about, text, waited = unpack(ARGV)
if redis.call('hexists', key, from) == 1 then
	local number
	if token then
		-- include: next_token
	end
	-- A full server lets a script write if its first write needs no memory. The old owner is removed last: a node of a
	-- Cluster whose slot is being moved would not let the lock be created again.
	redis.call('pexpire', key, lease)
	redis.call('hset', key, me, '1')
	redis.call('hdel', key, from)
	--+ keep('m', from, 'd', also)
	--+ keep_grant(me, number, about, text)
	if descriptions then
		redis.pcall('del', descriptions .. ':' .. from)
	end
	-- include: end_wait
	-- include: grant
end
if redis.call('hexists', key, me) == 1 then
	-- include: keep_hold
end
return {'gone', redis.call('hlen', key) == 1 and redis.call('hkeys', key)[1] or ''}
