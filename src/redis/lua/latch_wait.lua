-- Tells whether a latch is open.
--
-- KEYS: latch
-- Returns nil: open, or there is none
--         -1: closed, and nobody knows for how long
--         {'conflict', why}: the key is no latch
local value = redis.call('get', KEYS[1]) or '0'
if not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key is a string, but no number'}
end
if tonumber(value) > 0 then
	return -1
end
return nil
