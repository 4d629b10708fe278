-- Makes the values of a group last at least for the lease, for a WAIT that follows. Their expiry is written even if it
-- stays as it is, because some servers consider a WAIT done if no write came before it.
--
-- KEYS: group
-- ARGV: lease in ms, owner, hash of each value
-- Returns 1 if the owner holds all of the values, else 0
local key, lease, me = KEYS[1], tonumber(ARGV[1]), ARGV[2]
for i = 3, #ARGV do
	if redis.call('hget', key, ARGV[i]) ~= me then
		return 0
	end
end
-- include: now
-- include: allow_writes
for i = 3, #ARGV do
	local field = ARGV[i] .. ':' .. me .. ':expire_time'
	local expires = math.max(tonumber(redis.call('hget', key, field)) or 0, now + lease)
	redis.call('hset', key, field, string.format('%.0f', expires))
end
-- The group must outlive its fields.
local ttl = redis.call('pttl', key)
if ttl >= 0 and ttl < lease + 500 then
	redis.call('pexpire', key, lease + 500)
end
return 1
