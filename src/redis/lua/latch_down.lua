-- Counts a latch down, and opens it at zero. A repeat of a request that was done changes nothing.
--
-- KEYS: latch, record
-- ARGV: request id, how long the request is remembered in ms, command that publishes, channel
-- Returns integer: the new count, 0 if the latch is open or there is none
--         {'conflict', why}: the key is not a latch; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done
-- include: try
local key, record, id = KEYS[1], KEYS[2], ARGV[1]
-- include: record
if answer then
	return tonumber(answer)
end
-- include: check_number
local left = tonumber(value or '0') - 1
-- A full server lets a script write if its first write needs no memory.
redis.call('pexpire', record, ARGV[2])
redis.call('set', record, id .. ' ' .. string.format('%.0f', math.max(left, 0)), 'px', ARGV[2])
if left > 0 then
	redis.call('decr', key)
elseif value then
	redis.call('del', key)
end
if value and left == 0 then
	try(ARGV[3], ARGV[4], '0')
end
return reply(math.max(left, 0))
