-- Removes the lock that `holder` has; without one, the key is not a lock of this kind.
if not holder then
	return {'conflict', 'the key holds a hash that is not a lock of this kind'}
end
redis.call('del', key)
--+ keep_forced(holder)
