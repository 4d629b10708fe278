-- Gives back permits, all of them or none, and wakes waiters.
--
-- KEYS: permits, channel, their ends[, what the holders' descriptions begin with]
-- ARGV: ids
-- Returns integer: how many were given back
--         {'gone', id}: this one was not there or its time was over; nothing was changed
--         {'conflict', why}: the key holds no permits; nothing was changed
--         {'warning', command, error, one of these}: the message or a description failed, the rest is done

-- include: try
-- include: clean_permits

-- include: hex

local available, ends = KEYS[1], KEYS[3]
-- include: now
for _, id in ipairs(ARGV) do
	local score = redis.call('zscore', ends, id)
	if not score or tonumber(score) <= now then
		return {'gone', id}
	end
end
local value = redis.call('get', available)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
clean(available, ends, KEYS[2], now, -1)
-- The same id may be named twice.
local given, removed = {}, 0
for _, id in ipairs(ARGV) do
	removed = removed + (given[id] and 0 or 1)
	given[id] = true
end
redis.call('zrem', ends, '') -- changes nothing, and lets a full server allow what follows
local total = redis.call('incrby', available, removed)
for id in pairs(given) do
	redis.call('zrem', ends, id)
	if KEYS[4] then
		try('del', KEYS[4] .. ':' .. hex(id))
	end
end
-- Redisson's waiters expect the total after one permit, and the number of them after several.
try('publish', KEYS[2], string.format('%.0f', #ARGV == 1 and total or removed))
return reply(removed)
