-- Reads a page of the history: the entries after a position, the oldest first.
--
-- KEYS: [the stream, on a Cluster]
-- ARGV: stream, position as the id of an entry or as a negative number of ms before now, name or '' for all names
-- Returns {position of the last entry that was read; '1' if others may follow, else '0'; the server's time in ms; then a
--         text for each entry of the name}. A text is a row of fields, each of which is its length, a colon and its
--         bytes: the id of the entry, then event, name, owner, kind, how long the owner waited and held in ms, token,
--         host, process id and text, '' if the entry does not have it.
local stream, position, name = ARGV[1], ARGV[2], ARGV[3]
-- A reply has a maximum, and so has the time that other clients wait for this script.
local page, room, longest = 500, 90000, 2000
-- include: now

local function field(value)
	return #value .. ':' .. value
end

if string.sub(position, 1, 1) == '-' then
	position = string.format('%.0f-18446744073709551615', math.max(now + tonumber(position) - 1, 0))
end
local entries = redis.call('xrange', stream, '(' .. position, '+', 'count', page)
local rows = {position, #entries == page and '1' or '0', string.format('%.0f', now)}
for _, entry in ipairs(entries) do
	local id, fields, values = entry[1], entry[2], {}
	for i = 1, #fields, 2 do
		values[fields[i]] = string.sub(fields[i + 1], 1, longest)
	end
	if name == '' or values.n == name then
		local row = field(id)
		for letter in string.gmatch('enokwdthpx', '.') do
			row = row .. field(values[letter] or '')
		end
		room = room - #row
		if room < 0 then
			rows[2] = '1'
			break
		end
		table.insert(rows, row)
	end
	rows[1] = id
end
return rows
