-- Sets `first` to the first waiter of the queue that still counts, and removes those before it: their place has
-- expired or has no expiry, or they are Holdfast's and have not asked for too long. Java's waiters are not in
-- `alive`.
local first = call('lindex', queue, 0)
while first do
	local last_ms, alive_ms = call('zscore', expiry, first), call('zscore', alive, first)
	local is_dead = alive_ms and tonumber(alive_ms) <= now
	if last_ms and tonumber(last_ms) > now and not is_dead then
		break
	end
	call('zrem', expiry, first)
	call('zrem', alive, first)
	call('lpop', queue)
	first = call('lindex', queue, 0)
end
