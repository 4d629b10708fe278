-- Makes a read hold last at least for the lease, by its own key and the lock, for a WAIT that follows. Both are written
-- even if they stay as they are, because some servers consider a WAIT done if no write came before it.
--
-- KEYS: lock, key of the hold
-- ARGV: lease in ms, owner
-- Returns 1 if the hold exists, else 0
local key, hold, lease, me = KEYS[1], KEYS[2], tonumber(ARGV[1]), ARGV[2]
if redis.call('hexists', key, me) == 0 then
	return 0
end
redis.call('pexpire', key, math.max(redis.call('pttl', key), lease))
if redis.call('pexpire', hold, math.max(redis.call('pttl', hold), lease)) == 0 then
	redis.call('set', hold, 1, 'px', lease)
end
return 1
