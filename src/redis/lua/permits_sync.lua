-- Makes permits last at least for the lease, for a WAIT that follows. Each lasts at least a millisecond longer than
-- before, so that there is a write: some servers consider a WAIT done if no write came before it.
--
-- KEYS: the expiry of all permits
-- ARGV: lease in ms, ids
-- Returns 1 if all of these permits exist, else 0
local expiry, lease = KEYS[1], tonumber(ARGV[1])
for i = 2, #ARGV do
	if not redis.call('zscore', expiry, ARGV[i]) then
		return 0
	end
end
-- include: now
-- include: allow_permit_writes
for i = 2, #ARGV do
	local expires = math.max(tonumber(redis.call('zscore', expiry, ARGV[i])) + 1, now + lease)
	redis.call('zadd', expiry, string.format('%.0f', expires), ARGV[i])
end
return 1
