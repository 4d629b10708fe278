-- Sets `holder` to the owner that holds the lock; false or nil if the key is not a lock with a single field.
local held = fields == 1 and redis.call('hgetall', key)
local holder = held and string.find(held[1], ':', 1, true) and tonumber(held[2]) and held[1]
