-- Tells the number in a semaphore or a latch.
--
-- KEYS: semaphore or latch
-- Returns integer: the number, 0 if there is none
--         {'conflict', why}: the key is neither
local value = redis.call('get', KEYS[1]) or '0'
if not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
return tonumber(value)
