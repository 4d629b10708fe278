-- Takes permits under one id each, until the lease expires. If all ids exist already, this is a repeat, which only
-- makes them last at least for the lease.
--
-- KEYS: permits, their expiry
-- ARGV: number of permits, lease in ms or -1 for no expiry, command that publishes, channel, prefix of the holders'
--       descriptions or '', the first three lines of the owner's description or '', its last line or '', for how
--       long the owner has waited in ms if that is to be noted or '', ids
-- Returns nil: granted
--         integer: too few are available; ms until the next one expires, -1 if none will, -3 if the total was not set
--         {'gone', ''}: only some of the ids exist; nothing was changed
--         {'conflict', why}: the key does not hold permits; nothing was changed
--         {'warning', command, error, one of these}: a message or description failed; all else was done

--+ -- include: history
-- include: try
-- include: call
-- include: give_back_expired

-- include: hex

local key, expiry, count = KEYS[1], KEYS[2], tonumber(ARGV[1])
local lease, descriptions, about, text = ARGV[2], ARGV[5], ARGV[6], ARGV[7]
local waited = ARGV[8] ~= '' and ARGV[8]
local me = waited and hex(ARGV[9])
local never = 922337203685477
-- include: now
local expires = lease == '-1' and never or now + tonumber(lease)
local found, lower = 0, {}
for i = 9, #ARGV do
	local score = redis.call('zscore', expiry, ARGV[i])
	if score then
		found = found + 1
	end
	if not score or tonumber(score) < expires then
		table.insert(lower, ARGV[i])
	end
end
if found > 0 and found < count then
	return {'gone', ''}
end
if found == 0 then
	-- include: check_number
	give_back_expired(key, expiry, ARGV[3], ARGV[4], now, count)
	value = redis.call('get', key)
	if not value or tonumber(value) < count then
		-- include: note_wait
		local next_expiry = tonumber((call('zrange', expiry, 0, 0, 'withscores') or {})[2])
		if not next_expiry or next_expiry >= never then
			return reply(value and -1 or -3)
		end
		return reply(math.max(next_expiry - now, 1))
	end
	-- If the server refuses to write, it must do so before the first permit is taken.
	redis.call('decrby', key, 0)
end
for _, id in ipairs(lower) do
	if not call('zadd', expiry, string.format('%.0f', expires), id) then
		-- The permits that have expired were the last ones in use, and this is the first id.
		return redis.error_reply('TRYAGAIN the slot of the permits is being moved')
	end
end
if found == 0 then
	redis.call('decrby', key, ARGV[1])
	--+ for i = 9, #ARGV do
	--+ 	keep_grant(hex(ARGV[i]), nil, about, text)
	--+ end
	-- include: end_wait
end
for i = 9, descriptions ~= '' and lease ~= '-1' and #ARGV or 0 do
	local note, since = descriptions .. ':' .. hex(ARGV[i]), string.format('%.0f', found == 0 and now or 0)
	if found == 0 or redis.pcall('pexpire', note, lease) == 0 then
		try('set', note, about .. ' ' .. since .. ' ' .. lease .. '\n' .. text, 'px', lease)
	end
end
local ttl = redis.call('pttl', key)
if found == 0 and ttl > 0 then
	redis.call('pexpire', expiry, ttl)
end
return reply(false)
