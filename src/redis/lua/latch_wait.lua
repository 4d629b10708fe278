-- Checks whether a latch is open.
--
-- KEYS: latch
-- Returns nil: open, or there is none
--         -1: closed, for an unknown time
--         {'conflict', why}: the key is not a latch
local key = KEYS[1]
-- include: check_number
if tonumber(value or '0') > 0 then
	return -1
end
return nil
