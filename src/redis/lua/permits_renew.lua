-- Makes permits last at least for their lease; a lease of 0 only checks whether the permit exists. An error on one
-- key does not affect the others.
--
-- KEYS: for each permit: the expiry of all permits
-- ARGV: for each permit: lease in ms, id[, prefix of the holders' descriptions]
-- Returns for each permit 1 if it exists, else 0
-- include: hex

-- include: now
local found = {}
local each = #ARGV / #KEYS
for i, expiry in ipairs(KEYS) do
	local at = each * (i - 1)
	local lease, id, descriptions = tonumber(ARGV[at + 1]), ARGV[at + 2], each == 3 and ARGV[at + 3]
	local score = tonumber(redis.pcall('zscore', expiry, id))
	if score and lease > 0 and score < now + lease then
		-- include: allow_permit_writes
		redis.call('zadd', expiry, string.format('%.0f', now + lease), id)
	end
	if score and lease > 0 and descriptions then
		redis.pcall('pexpire', descriptions .. ':' .. hex(id), lease)
	end
	found[i] = score and 1 or 0
end
return found
