-- Makes a hold last at least for the lease, for a WAIT that follows. The expiry is written even if it stays as it is,
-- because some servers consider a WAIT done if no write came before it.
--
-- KEYS: lock
-- ARGV: lease in ms, owner
-- Returns 1 if the hold exists, else 0
local key, lease, me = KEYS[1], tonumber(ARGV[1]), ARGV[2]
if redis.call('hexists', key, me) == 0 then
	return 0
end
redis.call('pexpire', key, math.max(redis.call('pttl', key), lease))
return 1
