-- The owner holds the lock already. Makes lock and description last at least for the lease, and returns the token
-- of the hold if one was wanted. A description that was lost is written again, but nobody knows since when the lock is
-- held.
if redis.call('pttl', key) < tonumber(lease) then
	redis.call('pexpire', key, lease)
end
local left = descriptions and redis.pcall('pttl', descriptions .. ':' .. me)
local note = type(left) == 'number' and left < tonumber(lease) and
	redis.pcall('pexpire', descriptions .. ':' .. me, lease) == 0 and
	redis.pcall('set', descriptions .. ':' .. me, about .. ' 0 ' .. lease .. '\n' .. text, 'px', lease)
local stored = token and redis.pcall('get', token)
local granted = token and (type(stored) == 'string' and string.match(stored, '^%d+$') or '0')
do
	return note and note.err and {'warning', 'set', note.err, granted or false} or granted
end
