-- Returns the number in a semaphore or a latch.
--
-- KEYS: semaphore or latch
-- Returns integer: the number, 0 if there is none
--         {'conflict', why}: the key is neither
local key = KEYS[1]
-- include: check_number
return tonumber(value or '0')
