-- Makes read holds last at least for their lease, each by its own key and the lock; a lease of 0 only checks
-- whether the hold exists. An error on one key does not affect the others.
--
-- KEYS: for each hold: lock, key of the hold[, prefix of the holders' descriptions]
-- ARGV: for each hold: lease in ms, owner
-- Returns for each hold 1 if it exists, else 0
local found = {}
local each = #KEYS / (#ARGV / 2)
for i = 1, #ARGV / 2 do
	local at = each * (i - 1)
	local key, hold, descriptions = KEYS[at + 1], KEYS[at + 2], each == 3 and KEYS[at + 3]
	local lease, me = tonumber(ARGV[2 * i - 1]), ARGV[2 * i]
	if redis.pcall('hexists', key, me) == 1 then
		-- A full server lets a script write if its first write needs no memory.
		if lease > 0 and redis.call('pttl', hold) < lease and redis.call('pexpire', hold, lease) == 0 then
			redis.call('set', hold, 1, 'px', lease)
		end
		if lease > 0 and redis.call('pttl', key) < lease then
			redis.call('pexpire', key, lease)
		end
		if lease > 0 and descriptions then
			redis.call('pexpire', descriptions .. ':' .. me, lease)
		end
		found[i] = 1
	else
		found[i] = 0
	end
end
return found
