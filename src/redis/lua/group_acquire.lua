-- Takes all values of a group or none, makes the owner's count of each exactly n, and makes them last at least for
-- the lease. A repeat changes nothing. Only n = 1 can take values that are free.
--
-- KEYS: group
-- ARGV: lease in ms, owner, n, hash of each value
-- Returns nil: granted
--         integer: held by others; ms until the last of them expires
--         {'gone', ''}: n > 1, but the owner does not hold all of the values
--         {'conflict', why}: the key is not a group; nothing was changed
--+ -- include: history
local key, lease, me, n = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3]
-- include: check_group
-- include: now
local is_new = redis.call('exists', key) == 0
local others, last, all_mine = {}, 0, true
for i = 4, #ARGV do
	local holder = redis.call('hget', key, ARGV[i])
	if holder ~= me then
		all_mine = false
	end
	if holder and holder ~= me then
		others[i] = holder
		local expires = redis.call('hget', key, ARGV[i] .. ':' .. holder .. ':expire_time')
		last = math.max(last, tonumber(expires) or 0)
	end
end
if n ~= '1' and not all_mine then
	return {'gone', ''}
end
if last > now then
	return last - now
end
for i = 4, #ARGV do
	local mine = ARGV[i] .. ':' .. me
	if others[i] then
		local old = ARGV[i] .. ':' .. others[i]
		redis.call('hdel', key, old .. ':expire_time', old .. ':lock_count')
	end
	redis.call('hset', key, ARGV[i], me, mine .. ':lock_count', n)
	if (tonumber(redis.call('hget', key, mine .. ':expire_time')) or 0) < now + lease then
		redis.call('hset', key, mine .. ':expire_time', string.format('%.0f', now + lease))
	end
end
-- The fields say when a value expires, and the group must outlive them: Java takes a value the moment it expires, and
-- would lose it again if the group expired in that moment. A group without an expiry keeps none.
local ttl, longer = redis.call('pttl', key), lease + 500
if is_new or ttl >= 0 and ttl < longer then
	redis.call('pexpire', key, longer)
end
--+ if not all_mine then
--+ 	keep_grant(me)
--+ end
--+ if unkept then
--+ 	return {'warning', 'xadd', unkept, false}
--+ end
return nil
