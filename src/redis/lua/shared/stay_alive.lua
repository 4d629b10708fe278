-- Notes that this waiter is alive. The key lasts as long as the places in the queue can.
local noted = call('zadd', alive, string.format('%.0f', now + tonumber(ARGV[5])), me)
local lasts = math.max(ttl, 0) + tonumber(wait) + tonumber(ARGV[5])
if noted and redis.call('pttl', alive) < lasts then
	redis.call('pexpire', alive, lasts)
end
