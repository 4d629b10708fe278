-- The first of the queue that counts. Places that have expired or lost their end are removed, and so are
-- those of Holdfast's waiters that have not asked for too long; a waiter without a sign of life is Java's.
local first = redis.call('lindex', queue, 0)
while first do
	local last_ms, alive_ms = redis.call('zscore', ends, first), redis.call('zscore', alive, first)
	local is_dead = alive_ms and tonumber(alive_ms) <= now
	if last_ms and tonumber(last_ms) > now and not is_dead then
		break
	end
	redis.call('zrem', ends, first)
	redis.call('zrem', alive, first)
	redis.call('lpop', queue)
	first = redis.call('lindex', queue, 0)
end
