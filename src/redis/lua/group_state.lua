-- Returns the state of values of a group. A hold that has expired does not count.
--
-- KEYS: group
-- ARGV: owner, hash of each value
-- Returns {ms until the last of them expires, -2 if all are free; the owner's lowest count, 0 if it does not hold
--          all of them; the first holder found, or ''}
--         {'conflict', why}: the key is not a group
local key, me = KEYS[1], ARGV[1]
-- include: check_group
-- include: now
local ttl, count, first = -2, math.huge, ''
for i = 2, #ARGV do
	local holder = redis.call('hget', key, ARGV[i]) or ''
	local field = ARGV[i] .. ':' .. holder
	local left = (tonumber(redis.call('hget', key, field .. ':expire_time')) or 0) - now
	if left > 0 then
		ttl = math.max(ttl, left)
		first = first == '' and holder or first
	end
	if left > 0 and holder == me then
		count = math.min(count, tonumber(redis.call('hget', key, field .. ':lock_count')) or 0)
	else
		count = 0
	end
end
return {ttl, count, first}
