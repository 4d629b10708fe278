-- Makes holds last at least for their lease; a lease of 0 only checks whether the hold exists. An error on one key
-- does not affect the others.
--
-- KEYS: for each hold: lock
-- ARGV: for each hold: lease in ms, owner[, prefix of the holders' descriptions]
-- Returns for each hold 1 if it exists, else 0
local found = {}
local each = #ARGV / #KEYS
for i, key in ipairs(KEYS) do
	local at = each * (i - 1)
	local lease, me, descriptions = tonumber(ARGV[at + 1]), ARGV[at + 2], each == 3 and ARGV[at + 3]
	if redis.pcall('hexists', key, me) == 1 then
		-- include: prolong
		found[i] = 1
	else
		found[i] = 0
	end
end
return found
