-- Makes the writer's count exactly n, and the lock last at least for the lease. A repeat changes nothing. Only n =
-- 1 can take a free lock.
--
-- KEYS: lock[, token, if the grant is to have one]
-- ARGV: lease in ms, owner (with ':write'), n[, prefix of the holders' descriptions, the first three
--       lines of the owner's description, its last line[, for how long it has waited in ms if that is to be noted]]
-- Returns nil or the token: granted
--         integer: held by others; the lock's PTTL
--         {'busy', PTTL, 'lock'}: held as a lock of another kind
--         {'gone', ''}: n > 1, but the owner has no write hold
--         {'conflict', why}: the key is not a lock; nothing was changed
--         {'warning', command, error, one of these}: the description could not be written
--+ -- include: history
local key, token = KEYS[1], KEYS[2]
local lease, me, n, descriptions, about, text, waited = unpack(ARGV)
if redis.call('hexists', key, me) == 1 then
	redis.call('hset', key, me, n)
	-- include: keep_hold
end
if n ~= '1' then
	return {'gone', ''}
end
if redis.call('exists', key) == 0 then
	local number
	if token then
		-- include: next_token
	end
	redis.call('hset', key, 'mode', 'write', me, '1')
	redis.call('pexpire', key, lease)
	--+ keep_grant(me, number, about, text)
	-- include: end_wait
	-- include: grant
end
local ttl = redis.call('pttl', key)
local mode = redis.call('hget', key, 'mode')
if mode == 'read' or mode == 'write' then
	-- include: note_wait
	return ttl
end
local fields = redis.call('hlen', key)
-- include: find_holder
if holder then
	-- include: note_wait
	return {'busy', ttl, 'lock'}
end
return {'conflict', 'the key holds a hash that is not a lock'}
