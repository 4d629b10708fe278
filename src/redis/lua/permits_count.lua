-- Counts permits.
--
-- KEYS: permits, their ends, channel
-- ARGV: 'available', 'acquired' or 'total'
-- Returns integer: how many; there may be less than none available
--         {'conflict', why}: the key holds no permits; nothing was changed

-- Gives back permits whose time is over, and wakes waiters.
local function clean(available, ends, channel, now, limit)
	local ids = redis.call('zrangebyscore', ends, 0, now, 'limit', 0, limit)
	if #ids == 0 then
		return
	end
	-- First what a full server allows; the rest of the script is then allowed too.
	for _, id in ipairs(ids) do
		redis.call('zrem', ends, id)
	end
	local total = redis.call('incrby', available, #ids)
	if total > 0 then
		redis.call('publish', channel, string.format('%.0f', total))
	end
end

local available, ends = KEYS[1], KEYS[2]
local value = redis.call('get', available)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
clean(available, ends, KEYS[3], now, -1)
local acquired = redis.call('zcount', ends, 0, '+inf')
if ARGV[1] == 'acquired' then
	return acquired
end
value = redis.call('get', available)
if not value then
	return 0
end
if ARGV[1] == 'total' then
	return tonumber(value) + acquired
end
return tonumber(value)
