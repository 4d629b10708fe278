-- Messages and descriptions must not fail the verb they belong to: they are tried, and reply() reports what
-- failed. The command that publishes is an argument of the script, in upper case.
local warning
local function try(...)
	local result = redis.pcall(...)
	if type(result) == 'table' and result.err then
		warning = warning or {'warning', string.lower((...)), result.err}
		return false
	end
	return result
end

local function reply(value)
	--+ warning = warning or unkept and {'warning', 'xadd', unkept}
	if warning then
		warning[4] = value
		return warning
	end
	return value
end
