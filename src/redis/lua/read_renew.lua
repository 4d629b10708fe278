-- Lets read holds last at least their lease again, each by its own key and the lock; a lease of 0 only
-- asks whether the hold is there. What became of one key never stops the others.
--
-- KEYS: for each hold: lock, the hold's own key[, what the holders' descriptions begin with]
-- ARGV: for each hold: lease in ms, owner
-- Returns for each hold 1: it is there, or 0
local found = {}
local each = #KEYS / (#ARGV / 2)
for i = 1, #ARGV / 2 do
	local at = each * (i - 1)
	local key, hold, side = KEYS[at + 1], KEYS[at + 2], each == 3 and KEYS[at + 3]
	local lease, me = tonumber(ARGV[2 * i - 1]), ARGV[2 * i]
	if redis.pcall('hexists', key, me) == 1 then
		-- What needs no memory comes first, so that a full server allows the rest.
		if lease > 0 and redis.call('pttl', hold) < lease and redis.call('pexpire', hold, lease) == 0 then
			redis.call('set', hold, 1, 'px', lease)
		end
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
