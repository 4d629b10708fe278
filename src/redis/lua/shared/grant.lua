-- The owner holds the lock now. Writes its description if it has one, and returns the token if one was wanted.
local note = descriptions and redis.pcall('set', descriptions .. ':' .. me, description, 'px', lease)
local granted = token and {'granted', number}
return note and note.err and {'warning', 'set', note.err, granted or false} or granted
