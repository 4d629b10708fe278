-- Makes read holds last at least for their lease, each by its own key and the lock; a lease of 0 only checks
-- whether the hold exists. An error on one key does not affect the others.
--
-- KEYS: for each hold: lock, key of the hold
-- ARGV: for each hold: lease in ms, owner[, prefix of the holders' descriptions]
-- Returns for each hold 1 if it exists, else 0
local found = {}
local each = 2 * #ARGV / #KEYS
for i = 1, #KEYS / 2 do
	local key, hold, at = KEYS[2 * i - 1], KEYS[2 * i], each * (i - 1)
	local lease, me, descriptions = tonumber(ARGV[at + 1]), ARGV[at + 2], each == 3 and ARGV[at + 3]
	if redis.pcall('hexists', key, me) == 1 then
		-- A full server lets a script write if its first write needs no memory.
		if lease > 0 and redis.call('pttl', hold) < lease and redis.call('pexpire', hold, lease) == 0 then
			redis.call('set', hold, 1, 'px', lease)
		end
		-- include: prolong
		found[i] = 1
	else
		found[i] = 0
	end
end
return found
