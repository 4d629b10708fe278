-- Finds the histories of single names in one step of a walk over all keys of a master of a Cluster.
--
-- ARGV: cursor ('0' for the first step), 'find' or, to learn only about the slots, 'slots'
-- Returns {cursor of the next step, '0' after the last one; number of slots that the master owns, '1' if one of them is
--         being moved or else '0', and a text that differs if its slots do; then for each stream the id of its last
--         entry or '-' if that is not known, a space, and its key}
local at = string.match(ARGV[1], '^at:(%d+)$') or '0'

local function own_slots()
	for line in string.gmatch(redis.call('cluster', 'nodes'), '[^\n]+') do
		local id, flags, slots = string.match(line, '^(%S+) %S+ (%S+) %S+ %S+ %S+ %S+ %S+ ?(.*)$')
		if flags and string.find(flags, 'myself', 1, true) then
			return id, slots
		end
	end
	return '', ''
end

local id, slots = own_slots()
local owned, is_moving = 0, '0'
for range in string.gmatch(slots, '%S+') do
	local first, last = string.match(range, '^(%d+)%-?(%d*)$')
	if first then
		owned = owned + 1 + (tonumber(last) or first) - first
	else
		is_moving = '1'
	end
end
local rows = {'0', string.format('%.0f', owned) .. ' ' .. is_moving .. ' ' .. redis.sha1hex(id .. slots)}
if ARGV[2] == 'slots' then
	return rows
end
local step = redis.call('scan', at, 'match', 'holdfast_history:*', 'count', 200, 'type', 'stream')
if step[1] ~= '0' then
	rows[1] = 'at:' .. step[1]
end
for _, key in ipairs(step[2]) do
	-- The node that a slot is being moved to lists the keys that it has already, but does not read them.
	local last = redis.pcall('xrevrange', key, '+', '-', 'count', 1)
	if #key < 600 and (last.err or last[1]) then
		table.insert(rows, (last[1] and last[1][1] or '-') .. ' ' .. key)
	end
end
return rows
