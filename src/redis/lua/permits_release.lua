-- Gives back permits, all of them or none, and wakes waiters.
--
-- KEYS: permits, channel, their expiry[, prefix of the holders' descriptions]
-- ARGV: ids
-- Returns integer: how many were given back
--         {'gone', id}: this one does not exist or has expired; nothing was changed
--         {'conflict', why}: the key does not hold permits; nothing was changed
--         {'warning', command, error, one of these}: a message or description failed; all else was done

-- include: try
-- include: give_back_expired

-- include: hex

local key, expiry = KEYS[1], KEYS[3]
-- include: now
for _, id in ipairs(ARGV) do
	local score = redis.call('zscore', expiry, id)
	if not score or tonumber(score) <= now then
		return {'gone', id}
	end
end
-- include: check_number
give_back_expired(key, expiry, KEYS[2], now, -1)
-- The same id can be named twice.
local given, removed = {}, 0
for _, id in ipairs(ARGV) do
	removed = removed + (given[id] and 0 or 1)
	given[id] = true
end
-- include: allow_permit_writes
local total = redis.call('incrby', key, removed)
for id in pairs(given) do
	redis.call('zrem', expiry, id)
	if KEYS[4] then
		try('del', KEYS[4] .. ':' .. hex(id))
	end
end
-- Redisson's waiters expect the total if one permit was given back, and their number if several were.
try('publish', KEYS[2], string.format('%.0f', #ARGV == 1 and total or removed))
return reply(removed)
