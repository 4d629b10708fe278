-- The first of the queue whose place has not expired; expired places, and those without an end, are removed.
local first = redis.call('lindex', queue, 0)
while first do
	local last_ms = redis.call('zscore', ends, first)
	if last_ms and tonumber(last_ms) > now then
		break
	end
	redis.call('zrem', ends, first)
	redis.call('lpop', queue)
	first = redis.call('lindex', queue, 0)
end
