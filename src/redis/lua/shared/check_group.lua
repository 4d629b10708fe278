-- A group has three forms of fields: the hash of a value, which contains its holder, and for each holder
-- <hash>:<holder>:expire_time and <hash>:<holder>:lock_count. If there are many fields, only a sample is checked.
local function is_group(key)
	local n = redis.call('hlen', key)
	if n == 0 then
		return true
	end
	local pairs_of = n > 48 and redis.call('hrandfield', key, 16, 'withvalues') or redis.call('hgetall', key)
	for i = 1, #pairs_of, 2 do
		local field, value = pairs_of[i], pairs_of[i + 1]
		local is_value = #field == 22 and string.find(value, '^%x+%-%x+%-%x+%-%x+%-%x+:%d+$')
		local is_detail = string.find(field, '^......................:.+:expire_time$') or
			string.find(field, '^......................:.+:lock_count$')
		if not (is_value or is_detail and tonumber(value)) then
			return false
		end
	end
	return true
end

if not is_group(key) then
	return {'conflict', 'the key holds a hash that is not a group'}
end
