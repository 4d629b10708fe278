-- Takes permits, under one id each, until the lease ends. If all ids are there already this is a
-- repeat, which only lets them last at least the lease.
--
-- KEYS: permits, their ends, channel[, what the holders' descriptions begin with]
-- ARGV: how many, lease in ms or -1 for ever, the owner's description or '', ids
-- Returns nil: granted
--         integer: there are too few, ms until the next one ends; -1: none ends by itself
--         {'gone', ''}: only some of the ids are there; nothing was changed
--         {'conflict', why}: the key holds no permits; nothing was changed
--         {'warning', command, error, one of these}: a message or description failed, the rest is done

-- include: try
-- include: clean_permits

-- include: hex

local available, ends, count = KEYS[1], KEYS[2], tonumber(ARGV[1])
local never = 922337203685477
-- include: now
local till = ARGV[2] == '-1' and never or now + tonumber(ARGV[2])
local found, lower = 0, {}
for i = 4, #ARGV do
	local score = redis.call('zscore', ends, ARGV[i])
	if score then
		found = found + 1
	end
	if not score or tonumber(score) < till then
		table.insert(lower, ARGV[i])
	end
end
if found > 0 and found < count then
	return {'gone', ''}
end
if found == 0 then
	local value = redis.call('get', available)
	if value and not string.find(value, '^%-?%d+$') then
		return {'conflict', 'the key is a string, but no number'}
	end
	clean(available, ends, KEYS[3], now, count)
	value = redis.call('get', available)
	if not value or tonumber(value) < count then
		local next_end = tonumber(redis.call('zrange', ends, 0, 0, 'withscores')[2])
		if not next_end or next_end >= never then
			return reply(-1)
		end
		return reply(math.max(next_end - now, 1))
	end
	-- Both must be allowed, or permits would be taken that nobody has.
	redis.call('decrby', available, 0)
end
for _, id in ipairs(lower) do
	redis.call('zadd', ends, string.format('%.0f', till), id)
end
if found == 0 then
	redis.call('decrby', available, ARGV[1])
end
for i = 4, #ARGV do
	if KEYS[4] and ARGV[2] ~= '-1' then
		try('set', KEYS[4] .. ':' .. hex(ARGV[i]), ARGV[3], 'px', ARGV[2])
	end
end
local ttl = redis.call('pttl', available)
if found == 0 and ttl > 0 then
	redis.call('pexpire', ends, ttl)
end
return reply(false)
