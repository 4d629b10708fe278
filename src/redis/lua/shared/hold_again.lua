-- The owner holds it already: lets lock and description last at least the lease, and finds the token.
if redis.call('pttl', key) < tonumber(lease) then
	redis.call('pexpire', key, lease)
end
local note = side and redis.call('pttl', side .. ':' .. me) < tonumber(lease) and
	redis.call('pexpire', side .. ':' .. me, lease) == 0 and
	redis.pcall('set', side .. ':' .. me, description, 'px', lease)
local stored = token and redis.pcall('get', token)
local granted = token and {'granted', type(stored) == 'string' and string.match(stored, '^%d+$') or '0'}
do
	return note and note.err and {'warning', 'set', note.err, granted or false} or granted
end
