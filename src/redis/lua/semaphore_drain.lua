-- Takes all permits of a semaphore, which then has no expiry. A repeat of a request that was done takes nothing.
--
-- KEYS: semaphore, record
-- ARGV: request id, how long the request is remembered in ms
-- Returns integer: how many there were, which can be negative
--         {'conflict', why}: the key is not a semaphore; nothing was changed
local key, record, id = KEYS[1], KEYS[2], ARGV[1]
-- include: record
if answer then
	return tonumber(answer)
end
-- include: check_number
if not value then
	redis.pcall('set', record, id .. ' 0', 'px', ARGV[2])
	return 0
end
redis.call('set', record, id .. ' ' .. value, 'px', ARGV[2])
redis.call('set', key, 0)
return tonumber(value)
