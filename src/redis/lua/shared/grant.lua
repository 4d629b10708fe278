-- The owner holds the lock now. Writes its description if it has one, with the server's time and the lease, and returns
-- the token if one was wanted.
local note
if descriptions then
	local clock = redis.pcall('time')
	local since = clock.err and '0' or string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000))
	note = redis.pcall('set', descriptions .. ':' .. me, about .. ' ' .. since .. ' ' .. lease .. '\n' .. text,
		'px', lease)
end
local granted = token and number
--+ if unkept and not (note and note.err) then
--+ 	return {'warning', 'xadd', unkept, granted or false}
--+ end
return note and note.err and {'warning', 'set', note.err, granted or false} or granted
