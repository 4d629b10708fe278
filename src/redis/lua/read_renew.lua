-- Lets read holds last at least their lease again, each by its own key and the lock; a lease of 0 only
-- asks whether the hold is there. What became of one key never stops the others.
--
-- KEYS: for each hold: lock, the hold's own key, what the holders' descriptions begin with
-- ARGV: for each hold: lease in ms, owner, the owner's description or ''
-- Returns for each hold 1: it is there, or 0
local found = {}
for i = 1, #KEYS / 3 do
	local key, hold, side = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
	local lease, me, text = tonumber(ARGV[3 * i - 2]), ARGV[3 * i - 1], ARGV[3 * i]
	if redis.pcall('hexists', key, me) == 1 then
		if lease > 0 and redis.call('pttl', hold) < lease then
			redis.call('set', hold, 1, 'px', lease)
		end
		if lease > 0 and redis.call('pttl', key) < lease then
			redis.call('pexpire', key, lease)
		end
		if lease > 0 and text ~= '' then
			redis.call('set', side .. ':' .. me, text, 'px', lease)
		end
		found[i] = 1
	else
		found[i] = 0
	end
end
return found
