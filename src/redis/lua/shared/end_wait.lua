-- The owner does not wait any more: removes the note that says so.
if waited then
	local waiters = 'holdfast_waiter' .. string.sub(descriptions, 16)
	redis.pcall('del', waiters .. ':' .. me)
	redis.pcall('zrem', waiters, me)
end
