-- Lists locks: the one of a name, or those found in one step of a walk over all keys.
--
-- KEYS: [name]
-- ARGV: without a name: cursor ('0' for the first step), pattern
-- Returns {cursor of the next step, '0' after the last one; then a text for each lock}. A text is a row of fields, each
--         of which is its length, a colon and its bytes: name, kind, PTTL, token or '', the server's time in ms, number of
--         holders, number of waiters, how many of the holders and of the waiters follow, since a reply has a maximum; for each holder:
--         owner, count, description; for each waiter: owner.
local most, room = 200, 60000
-- include: now

local function field(value)
	value = tostring(value)
	return #value .. ':' .. value
end

-- include: hex

local function prefixed(prefix, name)
	if string.find(name, '{', 1, true) then
		return prefix .. ':' .. name
	end
	return prefix .. ':{' .. name .. '}'
end

local function is_owner(text)
	return string.find(text, '^%x+%-%x+%-%x+%-%x+%-%x+:')
end

local function row(name, kind, ttl, holders, waiters)
	local token = redis.pcall('get', prefixed('redisson_lock_token', name))
	local descriptions = prefixed('holdfast_holder', name)
	local entries, size, first = {}, #name + 200, kind
	local shown_holders, shown_waiters = 0, 0
	for i = 1, math.min(#holders, most) do
		local text = redis.pcall('get', descriptions .. ':' .. holders[i][1])
		text = type(text) == 'string' and #text < 1500 and text or ''
		local word = string.match(text, '^[%w-]+\n')
		if i == 1 and word and kind ~= 'read' and kind ~= 'write' then
			first = string.sub(word, 1, -2)
		end
		local owner = string.gsub(holders[i][1], ':write$', '')
		local entry = field(owner) .. field(holders[i][2]) .. field(text)
		if size + #entry > room then
			break
		end
		size, shown_holders = size + #entry, i
		table.insert(entries, entry)
	end
	for i = 1, math.min(#waiters, most) do
		local entry = field(waiters[i])
		if size + #entry > room then
			break
		end
		size, shown_waiters = size + #entry, i
		table.insert(entries, entry)
	end
	return field(name) .. field(first) .. field(ttl) ..
		field(type(token) == 'string' and string.match(token, '^%d+$') or '') ..
		field(string.format('%.0f', now)) .. field(#holders) .. field(#waiters) .. field(shown_holders) .. field(shown_waiters) ..
		table.concat(entries)
end

-- The waiters whose place has not expired.
local function queue_of(name)
	local waiters, living = redis.pcall('lrange', prefixed('redisson_lock_queue', name), 0, -1), {}
	for _, waiter in ipairs(waiters.err and {} or waiters) do
		local expires = redis.pcall('zscore', prefixed('redisson_lock_timeout', name), waiter)
		local alive = redis.pcall('zscore', prefixed('holdfast_alive', name), waiter)
		local is_dead = type(alive) == 'string' and tonumber(alive) <= now
		if type(expires) == 'string' and tonumber(expires) > now and not is_dead then
			table.insert(living, waiter)
		end
	end
	return living
end

-- Most hashes are not locks, and one field is enough to rule them out.
local function may_be_lock(name, n)
	if n == 1 or redis.call('hexists', name, 'mode') == 1 then
		return true
	end
	local field = redis.call('hrandfield', name)
	return #field == 22 or string.find(field, '^......................:.+:expire_time$') or
		string.find(field, '^......................:.+:lock_count$')
end

local function read_hash(name)
	local n = redis.pcall('hlen', name)
	if type(n) == 'table' and string.find(n.err, 'non local key', 1, true) then
		return nil -- the node that a slot is being moved to lists its keys, but does not serve them yet
	elseif type(n) == 'table' then
		return redis.call('hlen', name) -- which ends the script with the same error
	end
	if n == 0 or n > 3000 or not may_be_lock(name, n) then
		return nil
	end
	local pairs_of, holders, kind = redis.call('hgetall', name), {}, nil
	local values = {}
	for i = 1, #pairs_of, 2 do
		values[pairs_of[i]] = pairs_of[i + 1]
	end
	local mode = values.mode
	for i = 1, #pairs_of, 2 do
		local key, value = pairs_of[i], pairs_of[i + 1]
		if is_owner(key) and tonumber(value) then
			table.insert(holders, {key, value})
		elseif #key == 22 and is_owner(value) and
			(tonumber(values[key .. ':' .. value .. ':expire_time']) or 0) > now then
			kind = 'group'
			table.insert(holders, {value, values[key .. ':' .. value .. ':lock_count'] or 0})
		end
	end
	if #holders == 0 or (not mode and not kind and n > 1) then
		return nil
	end
	local waiters = queue_of(name)
	kind = kind or mode or (#waiters > 0 and 'fair' or 'reentrant')
	return row(name, kind, redis.call('pttl', name), holders, waiters)
end

local function read_permits(key)
	local name = string.match(key, '^{([^{}]+)}:timeout$') or string.match(key, '^(.*{.*):timeout$')
	local available = name and redis.pcall('get', name)
	if type(available) ~= 'string' or not tonumber(available) then
		return nil
	end
	local members, holders, last = redis.call('zrange', key, 0, -1, 'withscores'), {}, 0
	for i = 1, #members, 2 do
		if #members[i] ~= 16 then
			return nil
		end
		last = tonumber(members[i + 1])
		if last > now then
			table.insert(holders, {hex(members[i]), 1})
		end
	end
	if #holders == 0 then
		return nil
	end
	return row(name, 'permits', last > 1e14 and -1 or string.format('%.0f', math.max(last - now, 0)),
		holders, {})
end

if KEYS[1] then
	local kind = redis.call('type', KEYS[1]).ok
	local found
	if kind == 'hash' then
		found = read_hash(KEYS[1])
	elseif kind == 'string' then
		local braced = string.find(KEYS[1], '{', 1, true) and KEYS[1] or '{' .. KEYS[1] .. '}'
		if redis.pcall('exists', braced .. ':timeout') == 1 then
			found = read_permits(braced .. ':timeout')
		end
	elseif kind == 'none' and #queue_of(KEYS[1]) > 0 then
		found = row(KEYS[1], 'fair', -2, {}, queue_of(KEYS[1]))
	end
	return {'0', found}
end
-- Locks are hashes and permits are sorted sets, so one walk over each type follows the other. The name of
-- permits is only a part of their key, so the caller matches it against the pattern.
local kind, at = string.match(ARGV[1], '^(%a+):(%d+)$')
kind, at = kind or 'hash', at or '0'
local pattern = kind == 'zset' and '*:timeout' or ARGV[2]
local step = redis.call('scan', at, 'match', pattern, 'count', 100, 'type', kind)
local following = kind .. ':' .. step[1]
if step[1] == '0' then
	following = kind == 'hash' and 'zset:0' or '0'
end
local rows = {following}
room = math.floor(100000 / (#step[2] + 1))
for _, key in ipairs(step[2]) do
	local found
	if #key > room - 300 then
		found = nil -- longer than the name of any lock
	elseif kind == 'hash' then
		found = read_hash(key)
	else
		found = read_permits(key)
	end
	if found then
		table.insert(rows, found)
	end
end
return rows
