-- The owner keeps waiting. If it has waited for long enough, it says so in a note, which lasts for three polls, and is
-- added to the set of those that wait, with the time until which its note lasts. A failure does not matter. It has
-- waited for 0 if the set may be at another node: then nothing is written.
if waited and waited ~= '0' then
	local waiters, clock, lasts = 'holdfast_waiter' .. string.sub(descriptions, 16), redis.pcall('time'), 9000
	local at = clock.err and 0 or clock[1] * 1000 + math.floor(clock[2] / 1000)
	local since = clock.err and '0' or string.format('%.0f', at - tonumber(waited))
	redis.pcall('set', waiters .. ':' .. me, about .. ' ' .. since .. ' ' .. lease .. '\n' .. text, 'px', lasts)
	for _, dead in ipairs(redis.pcall('zrangebyscore', waiters, 0, string.format('%.0f', at), 'limit', 0, 10)) do
		redis.pcall('zrem', waiters, dead)
	end
	redis.pcall('zadd', waiters, string.format('%.0f', at + lasts), me)
	redis.pcall('pexpire', waiters, lasts)
end
