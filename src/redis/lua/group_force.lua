-- Frees values of a group regardless of the holders, and wakes the waiters.
--
-- KEYS: group
-- ARGV: message, command that publishes, channel, hash of each value
-- Returns 1: at least one was held, 0: none was
--         {'conflict', why}: the key is not a group; nothing was changed
--         {'warning', command, error, one of these}: the message could not be published; all else was done
--+ -- include: history
-- include: try
-- include: call
local key, removed = KEYS[1], 0
--+ local forced = {}
-- include: check_group
for i = 4, #ARGV do
	local holder = call('hget', key, ARGV[i])
	if holder then
		local field = ARGV[i] .. ':' .. holder
		redis.call('hdel', key, ARGV[i], field .. ':expire_time', field .. ':lock_count')
		removed = 1
		--+ if not forced[holder] then
		--+ 	forced[holder] = true
		--+ 	keep_forced(holder)
		--+ end
	end
end
if removed == 1 then
	try(ARGV[2], ARGV[3], ARGV[1])
end
return reply(removed)
