-- Gives back permits whose time is over, and wakes waiters.
local function clean(available, ends, channel, now, limit)
	local ids = redis.call('zrangebyscore', ends, 0, now, 'limit', 0, limit)
	if #ids == 0 then
		return
	end
	redis.call('zrem', ends, '') -- changes nothing, and lets a full server allow what follows
	local total = redis.call('incrby', available, #ids)
	for _, id in ipairs(ids) do
		redis.call('zrem', ends, id)
	end
	if total > 0 then
		try('publish', channel, string.format('%.0f', total))
	end
end
