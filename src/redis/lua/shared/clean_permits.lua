-- Gives back permits whose time is over, and wakes waiters.
local function clean(available, ends, channel, now, limit)
	local ids = redis.call('zrangebyscore', ends, 0, now, 'limit', 0, limit)
	if #ids == 0 then
		return
	end
	-- First what a full server allows; the rest of the script is then allowed too.
	for _, id in ipairs(ids) do
		redis.call('zrem', ends, id)
	end
	local total = redis.call('incrby', available, #ids)
	if total > 0 then
		redis.call('publish', channel, string.format('%.0f', total))
	end
end
