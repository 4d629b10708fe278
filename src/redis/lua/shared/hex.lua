-- A permit's id as it is written in names of keys.
local function hex(id)
	return (string.gsub(id, '.', function(c) return string.format('%02x', string.byte(c)) end))
end
