-- Returns the state of one half of a read-write lock.
--
-- KEYS: lock
-- ARGV: owner, 'read' or 'write'
-- Returns {PTTL, -2 if nobody holds this half; the owner's count; a holder, or ''}
--         {'conflict', why}: the key is not a lock
local key, me, half = KEYS[1], ARGV[1], ARGV[2]
local count = tonumber(redis.call('hget', key, me)) or 0
local mode = redis.call('hget', key, 'mode')
if mode ~= 'read' and mode ~= 'write' then
	mode = nil
end
local holder = ''
for _, field in ipairs(redis.call('hkeys', key)) do
	local writer = string.match(field, '^(.*):write$')
	if half == 'write' and writer then
		holder = writer
	elseif (half == 'read' or not mode) and not writer and field ~= 'mode' then
		holder = field
	end
end
if not mode and redis.call('exists', key) == 1 and
	not (redis.call('hlen', key) == 1 and string.find(holder, ':', 1, true)) then
	return {'conflict', 'the key holds a hash that is not a lock'}
end
if holder == '' then
	return {-2, 0, ''}
end
return {redis.call('pttl', key), count, holder}
