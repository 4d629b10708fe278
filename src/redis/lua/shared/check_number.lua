-- Sets `value` to the number in the key, as text; nil if the key does not exist.
local value = redis.call('get', key)
if value and not string.find(value, '^%-?%d+$') then
	return {'conflict', 'the key holds a string that is not a number'}
end
