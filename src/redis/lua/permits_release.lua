-- Gives back permits, all of them or none, and wakes waiters.
--
-- KEYS: permits, their expiry
-- ARGV: command that publishes, channel, prefix of the holders' descriptions or '', ids
-- Returns integer: how many were given back
--         {'gone', id}: this one does not exist or has expired; nothing was changed
--         {'conflict', why}: the key does not hold permits; nothing was changed
--         {'warning', command, error, one of these}: a message or description failed; all else was done

--+ -- include: history
-- include: try
-- include: give_back_expired

-- include: hex

local key, expiry, publish, channel, descriptions = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
-- include: now
for i = 4, #ARGV do
	local score = redis.call('zscore', expiry, ARGV[i])
	if not score or tonumber(score) <= now then
		return {'gone', ARGV[i]}
	end
end
-- include: check_number
give_back_expired(key, expiry, publish, channel, now, -1)
-- The same id can be named twice.
local given, removed = {}, 0
for i = 4, #ARGV do
	removed = removed + (given[ARGV[i]] and 0 or 1)
	given[ARGV[i]] = true
end
-- include: allow_permit_writes
local total = redis.call('incrby', key, removed)
for id in pairs(given) do
	redis.call('zrem', expiry, id)
	--+ keep_end(hex(id))
	if descriptions ~= '' then
		try('del', descriptions .. ':' .. hex(id))
	end
end
-- Redisson's waiters expect the total if one permit was given back, and their number if several were.
try(publish, channel, string.format('%.0f', #ARGV == 4 and total or removed))
return reply(removed)
