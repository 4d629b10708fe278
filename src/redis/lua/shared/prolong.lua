-- Prolongs the lock and the description of `me`; a lease of 0 changes nothing.
if lease > 0 and redis.call('pttl', key) < lease then
	redis.call('pexpire', key, lease)
end
if lease > 0 and descriptions then
	redis.pcall('pexpire', descriptions .. ':' .. me, lease)
end
