-- The server's time in milliseconds since the epoch.
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
