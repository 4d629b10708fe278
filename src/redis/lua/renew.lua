-- Lets holds last at least their lease again; a lease of 0 only asks whether the hold is there.
-- What became of one key never stops the others.
--
-- KEYS: for each lock: lock[, what the holders' descriptions begin with]
-- ARGV: for each lock: lease in ms, owner
-- Returns for each lock 1: the hold is there, or 0
local found = {}
local each = #KEYS / (#ARGV / 2)
for i = 1, #ARGV / 2 do
	local key, side = KEYS[each * (i - 1) + 1], each == 2 and KEYS[2 * i]
	local lease, me = tonumber(ARGV[2 * i - 1]), ARGV[2 * i]
	if redis.pcall('hexists', key, me) == 1 then
		if lease > 0 and redis.call('pttl', key) < lease then
			redis.call('pexpire', key, lease)
		end
		if lease > 0 and side then
			redis.call('pexpire', side .. ':' .. me, lease)
		end
		found[i] = 1
	else
		found[i] = 0
	end
end
return found
