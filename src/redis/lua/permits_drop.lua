-- Gives back those permits that are there, their time over or not, and wakes waiters.
--
-- KEYS: permits, channel, their ends[, what the holders' descriptions begin with]
-- ARGV: ids
-- Returns integer: how many were given back
--         {'gone', ''}: none was there
--         {'conflict', why}: the key holds no permits; nothing was changed

-- include: hex

local available, ends = KEYS[1], KEYS[3]
local value = redis.call('get', available)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
local removed = 0
for _, id in ipairs(ARGV) do
	removed = removed + redis.call('zrem', ends, id)
	if KEYS[4] then
		redis.call('del', KEYS[4] .. ':' .. hex(id))
	end
end
if removed == 0 then
	return {'gone', ''}
end
local total = redis.call('incrby', available, removed)
redis.call('publish', KEYS[2], string.format('%.0f', total))
return removed
