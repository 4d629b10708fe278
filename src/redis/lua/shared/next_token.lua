-- Sets `number` to the next token of the key `token`. It is greater than the last one, and than the server's time
-- in microseconds, so that no token is given twice after a failover that lost the last write.
local time, counted = redis.call('time'), redis.pcall('incr', token)
if type(counted) == 'table' then
	local why = counted.err
	if string.find(why, 'integer') or string.find(why, 'overflow') or string.find(why, 'WRONGTYPE') then
		return {'conflict', 'the key of its token does not hold a number'}
	end
	return counted
elseif counted < time[1] * 1000000 + time[2] then
	redis.call('set', token, string.format('%.0f', time[1] * 1000000 + time[2]))
end
redis.call('persist', token)
number = redis.call('get', token)
