-- Lets permits last at least their lease again; a lease of 0 only asks whether the permit is there.
-- What became of one key never stops the others.
--
-- KEYS: for each permit: the ends of all[, what the holders' descriptions begin with]
-- ARGV: for each permit: lease in ms, id
-- Returns for each permit 1: it is there, or 0
-- include: hex

-- include: now
local found = {}
local each = #KEYS / (#ARGV / 2)
for i = 1, #ARGV / 2 do
	local ends, side = KEYS[each * (i - 1) + 1], each == 2 and KEYS[2 * i]
	local lease, id = tonumber(ARGV[2 * i - 1]), ARGV[2 * i]
	local score = tonumber(redis.pcall('zscore', ends, id))
	if score and lease > 0 and score < now + lease then
		redis.call('zrem', ends, '') -- changes nothing, and lets a full server allow what follows
		redis.call('zadd', ends, string.format('%.0f', now + lease), id)
	end
	if score and lease > 0 and side then
		redis.call('pexpire', side .. ':' .. hex(id), lease)
	end
	found[i] = score and 1 or 0
end
return found
