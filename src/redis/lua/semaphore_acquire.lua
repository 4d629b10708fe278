-- Takes permits of a semaphore. A repeat of a request that took them takes nothing.
--
-- KEYS: semaphore, record
-- ARGV: permits, request id, ms to remember the request, 1 for a repeat
-- Returns nil: granted
--         -1: there are too few, and nobody knows for how long
--         {'gone', ''}: the request was undone before it arrived
--         {'conflict', why}: the key is no semaphore; nothing was changed
local key, record, id = KEYS[1], KEYS[2], ARGV[2]
-- include: record
if answer then
	return answer == '0' and {'gone', ''} or nil
end
local value = redis.call('get', key)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
if not value or tonumber(value) < tonumber(ARGV[1]) then
	if ARGV[4] == '1' then
		-- The first one may still be on its way, and must not take what nobody waits for.
		redis.pcall('set', record, id .. ' 0', 'px', ARGV[3])
	end
	return -1
end
-- Nothing is taken without a record of it, nor recorded without being allowed to take it.
redis.call('decrby', key, 0)
redis.call('set', record, id .. ' ' .. ARGV[1], 'px', ARGV[3])
redis.call('decrby', key, ARGV[1])
return nil
