-- Gives back those permits that are there, their time over or not, and wakes waiters.
--
-- KEYS: permits, channel, their ends[, what the holders' descriptions begin with]
-- ARGV: ids
-- Returns integer: how many were given back
--         {'gone', ''}: none was there
--         {'conflict', why}: the key holds no permits; nothing was changed
--         {'warning', command, error, one of these}: the message or a description failed, the rest is done

-- include: try
-- include: hex

local available, ends = KEYS[1], KEYS[3]
local value = redis.call('get', available)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
local there = {}
for _, id in ipairs(ARGV) do
	if redis.call('zscore', ends, id) then
		table.insert(there, id)
	end
	if KEYS[4] then
		try('del', KEYS[4] .. ':' .. hex(id))
	end
end
if #there == 0 then
	return reply({'gone', ''})
end
redis.call('zrem', ends, '') -- changes nothing, and lets a full server allow what follows
local total = redis.call('incrby', available, #there)
for _, id in ipairs(there) do
	redis.call('zrem', ends, id)
end
try('publish', KEYS[2], string.format('%.0f', total))
return reply(#there)
