-- redis.call() for keys that this script may have removed. While a slot of a Cluster is being moved, the node that it
-- leaves refuses every key that does not exist; then the result is false.
local function call(...)
	local result = redis.pcall(...)
	if type(result) ~= 'table' or not result.err then
		return result
	end
	return not string.find(result.err, 'non local key', 1, true) and redis.call(...)
end
