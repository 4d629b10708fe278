-- Takes permits of a semaphore. A repeat of a request that took them takes nothing.
--
-- KEYS: semaphore, record
-- ARGV: permits, request id, how long the request is remembered in ms, 1 for a repeat
-- Returns nil: granted
--         -1: too few are available, for an unknown time; -3: the semaphore does not exist
--         {'gone', ''}: the request was undone before it arrived
--         {'conflict', why}: the key is not a semaphore; nothing was changed
local key, record, id = KEYS[1], KEYS[2], ARGV[2]
-- include: record
if answer then
	return answer == '0' and {'gone', ''} or nil
end
-- include: check_number
if not value or tonumber(value) < tonumber(ARGV[1]) then
	if ARGV[4] == '1' then
		-- The first request may still be in flight, and must not take permits that nobody waits for.
		redis.pcall('set', record, id .. ' 0', 'px', ARGV[3])
	end
	return value and -1 or -3
end
-- If the server refuses to write, it must do so before the record says that permits were taken.
redis.call('decrby', key, 0)
redis.call('set', record, id .. ' ' .. ARGV[1], 'px', ARGV[3])
redis.call('decrby', key, ARGV[1])
return nil
