-- Lets holds last at least their lease again; a lease of 0 only asks whether the hold is there.
-- What became of one key never stops the others.
--
-- KEYS: locks
-- ARGV: for each lock: lease in ms, owner
-- Returns for each lock 1: the hold is there, or 0
local found = {}
for i, key in ipairs(KEYS) do
	local lease, me = tonumber(ARGV[2 * i - 1]), ARGV[2 * i]
	if redis.pcall('hexists', key, me) == 1 then
		if lease > 0 and redis.call('pttl', key) < lease then
			redis.call('pexpire', key, lease)
		end
		found[i] = 1
	else
		found[i] = 0
	end
end
return found
