-- Grants a read hold, and makes the lock last at least for the lease. A repeat changes nothing. The server counts
-- one hold per owner, however deep it nests, and only n = 1 can begin it.
--
-- KEYS: lock, key of the hold
-- ARGV: lease in ms, owner, n, the writer (with ':write') or '' if the owner does not read inside its own write hold[,
--       prefix of the holders' descriptions, the first three lines of the owner's description, its last line[, for
--       how long it has waited in ms if that is to be noted]]
-- Returns nil: granted
--         integer: held by another owner's writer; the lock's PTTL
--         {'busy', PTTL, 'lock'}: held as a lock of another kind
--         {'gone', ''}: n > 1, but the owner has no read hold
--         {'conflict', why}: the key is not a lock; nothing was changed
--         {'warning', command, error, one of these}: the description could not be written
--+ -- include: history
local key, hold = KEYS[1], KEYS[2]
local lease, me, n, writer, descriptions, about, text, waited = unpack(ARGV)
local is_new = false
local mode = redis.call('hget', key, 'mode')
if mode ~= 'read' and mode ~= 'write' then
	mode = nil
end
if not mode and redis.call('exists', key) == 1 then
	local fields = redis.call('hlen', key)
	-- include: find_holder
	if n ~= '1' then
		return {'gone', ''}
	elseif holder then
		-- include: note_wait
		return {'busy', redis.call('pttl', key), 'lock'}
	end
	return {'conflict', 'the key holds a hash that is not a lock'}
end
if redis.call('hexists', key, me) == 0 then
	if n ~= '1' then
		return {'gone', ''}
	elseif mode == 'write' and (writer == '' or redis.call('hexists', key, writer) == 0) then
		-- include: note_wait
		return redis.call('pttl', key)
	elseif not mode then
		redis.call('hset', key, 'mode', 'read')
	end
	redis.call('hset', key, me, '1')
	is_new = true
	-- include: end_wait
end
local note
if redis.call('pttl', hold) < tonumber(lease) then
	redis.call('set', hold, 1, 'px', lease)
	if descriptions and redis.pcall('pexpire', descriptions .. ':' .. me, lease) == 0 then
		local clock = is_new and redis.pcall('time')
		local since = clock and not clock.err and clock[1] * 1000 + math.floor(clock[2] / 1000) or 0
		note = redis.pcall('set', descriptions .. ':' .. me,
			about .. ' ' .. string.format('%.0f', since) .. ' ' .. lease .. '\n' .. text, 'px', lease)
	end
end
if redis.call('pttl', key) < tonumber(lease) then
	redis.call('pexpire', key, lease)
end
--+ if is_new then
--+ 	keep_grant(me, nil, about, text)
--+ end
--+ if unkept and not (note and note.err) then
--+ 	return {'warning', 'xadd', unkept, false}
--+ end
return note and note.err and {'warning', 'set', note.err, false} or nil
