-- Makes holds last at least for their lease; a lease of 0 only checks whether the hold exists. An error on one key
-- does not affect the others.
--
-- KEYS: for each hold: lock[, prefix of the holders' descriptions]
-- ARGV: for each hold: lease in ms, owner
-- Returns for each hold 1 if it exists, else 0
local found = {}
local each = #KEYS / (#ARGV / 2)
for i = 1, #ARGV / 2 do
	local key, descriptions = KEYS[each * (i - 1) + 1], each == 2 and KEYS[2 * i]
	local lease, me = tonumber(ARGV[2 * i - 1]), ARGV[2 * i]
	if redis.pcall('hexists', key, me) == 1 then
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
