-- Notes that this waiter is alive. The key lasts as long as the places in the queue can.
local noted = call('zadd', alive, string.format('%.0f', now + tonumber(alive_ms)), me)
local lasts = math.max(ttl, 0) + tonumber(wait) + tonumber(alive_ms)
if noted and redis.call('pttl', alive) < lasts then
	redis.call('pexpire', alive, lasts)
end
