-- Gives back those of the permits that exist, expired or not, and wakes waiters.
--
-- KEYS: permits, their expiry
-- ARGV: command that publishes, channel, prefix of the holders' descriptions or '', how long the first one's owner
--       had waited in ms if that was noted or '', ids
-- Returns integer: how many were given back
--         {'gone', ''}: none of them exists
--         {'conflict', why}: the key does not hold permits; nothing was changed
--         {'warning', command, error, one of these}: a message or description failed; all else was done

--+ -- include: history
-- include: try
-- include: hex

local key, expiry, descriptions = KEYS[1], KEYS[2], ARGV[3]
local waited = ARGV[4] ~= '' and ARGV[4]
local me = waited and hex(ARGV[5])
-- include: end_wait
-- include: check_number
local found = {}
for i = 5, #ARGV do
	local id = ARGV[i]
	if redis.call('zscore', expiry, id) then
		table.insert(found, id)
	--+ else
	--+ 	keep_lost(hex(id))
	end
	if descriptions ~= '' then
		try('del', descriptions .. ':' .. hex(id))
	end
end
if #found == 0 then
	--+ keep_wait(hex(ARGV[5] or ''))
	return reply({'gone', ''})
end
-- include: allow_permit_writes
local total = redis.call('incrby', key, #found)
for _, id in ipairs(found) do
	redis.call('zrem', expiry, id)
	--+ keep_end(hex(id))
end
try(ARGV[1], ARGV[2], string.format('%.0f', total))
return reply(#found)
