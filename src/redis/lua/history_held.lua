-- Finds out which of these holds the server still has.
--
-- KEYS: [the lock, on a Cluster]
-- ARGV: for each hold: kind, name, owner
-- Returns {the server's time in ms; then for each hold '1' if it exists, else '0'}
-- include: now

local function braced(name)
	return string.find(name, '{', 1, true) and name or '{' .. name .. '}'
end

local function has_permit(name, owner)
	local id = string.gsub(owner, '%x%x', function(digits) return string.char(tonumber(digits, 16)) end)
	local score = redis.call('zscore', braced(name) .. ':timeout', id)
	return score and tonumber(score) > now
end

local function has_value(name, owner)
	local pairs_of = redis.call('hgetall', name)
	local values = {}
	for i = 1, #pairs_of, 2 do
		values[pairs_of[i]] = pairs_of[i + 1]
	end
	for field, value in pairs(values) do
		if value == owner and (tonumber(values[field .. ':' .. owner .. ':expire_time']) or 0) > now then
			return true
		end
	end
	return false
end

local function has_field(name, owner)
	return redis.call('type', name).ok == 'hash' and redis.call('hexists', name, owner) == 1
end

local rows = {string.format('%.0f', now)}
for i = 1, #ARGV, 3 do
	local kind, name, owner, held = ARGV[i], ARGV[i + 1], ARGV[i + 2], nil
	if kind == 'permits' then
		held = has_permit(name, owner)
	elseif kind == 'group' then
		held = redis.call('type', name).ok == 'hash' and has_value(name, owner)
	elseif kind == 'read' then
		held = has_field(name, owner) and
			redis.call('exists', braced(name) .. ':' .. owner .. ':rwlock_timeout:1') == 1
	else
		held = has_field(name, owner)
	end
	table.insert(rows, held and '1' or '0')
end
return rows
