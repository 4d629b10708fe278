-- Makes holds of groups last at least for their lease; a lease of 0 only checks whether they exist. An error on one
-- key does not affect the others.
--
-- KEYS: groups
-- ARGV: for each group: lease in ms, owner, number of values, hash of each value
-- Returns for each group 1 if the owner holds all of the values, else 0
-- include: now

local function holds(key, me, first, last)
	for i = first, last do
		if redis.pcall('hget', key, ARGV[i]) ~= me then
			return false
		end
	end
	return true
end

local function renew(key, me, lease, first, last)
	-- include: allow_writes
	for i = first, last do
		local field = ARGV[i] .. ':' .. me .. ':expire_time'
		if (tonumber(redis.call('hget', key, field)) or 0) < now + lease then
			redis.call('hset', key, field, string.format('%.0f', now + lease))
		end
	end
	-- The group must outlive its fields.
	local ttl = redis.call('pttl', key)
	if ttl >= 0 and ttl < lease + 500 then
		redis.call('pexpire', key, lease + 500)
	end
end

local found, at = {}, 1
for i, key in ipairs(KEYS) do
	local lease, me = tonumber(ARGV[at]), ARGV[at + 1]
	local first, last = at + 3, at + 2 + tonumber(ARGV[at + 2])
	local is_held = holds(key, me, first, last)
	if is_held and lease > 0 then
		renew(key, me, lease, first, last)
	end
	found[i] = is_held and 1 or 0
	at = last + 1
end
return found
