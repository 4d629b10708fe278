-- Gives back permits that have expired, `limit` of them at most or all if that is -1, and wakes waiters.
local function give_back_expired(key, expiry, publish, channel, now, limit)
	local ids = redis.call('zrangebyscore', expiry, 0, now, 'limit', 0, limit)
	if #ids == 0 then
		return
	end
	redis.call('zrem', expiry, '') -- needs no memory, so that a full server allows the next writes
	local total = redis.call('incrby', key, #ids)
	for _, id in ipairs(ids) do
		redis.call('zrem', expiry, id)
	end
	if total > 0 then
		try(publish, channel, string.format('%.0f', total))
	end
end
