-- Lists locks: the one of a name, those of several names, or those found in one step of a walk over all keys.
--
-- KEYS: [name]
-- ARGV: command that publishes; without a name: 'names' and the names, or cursor ('0' for the first step) and pattern
-- Returns {cursor of the next step, '0' after the last one; then a text for each lock}. A text is a row of fields, each
--         of which is its length, a colon and its bytes: name, kind, PTTL, token or '', the server's time in ms, number
--         of waiting clients or '' if that is not known, number of holders, number of waiters, how many of the holders
--         and of the waiters follow, since a reply has a maximum; for each holder: owner, count, description; for each
--         waiter: owner, description.
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

local function read_note(key)
	local note = redis.pcall('get', key)
	return type(note) == 'string' and #note < 1500 and note or ''
end

-- The waiters in the queue whose place has not expired, and how many clients of Java they belong to.
local function queue_of(name)
	local waiters, living = redis.pcall('lrange', prefixed('redisson_lock_queue', name), 0, -1), {}
	local java, clients = {}, 0
	for _, waiter in ipairs(waiters) do
		local expires = redis.pcall('zscore', prefixed('redisson_lock_timeout', name), waiter)
		local alive = redis.pcall('zscore', prefixed('holdfast_alive', name), waiter)
		local is_dead = type(alive) == 'string' and tonumber(alive) <= now
		if type(expires) == 'string' and tonumber(expires) > now and not is_dead then
			table.insert(living, waiter)
			local client = string.match(waiter, '^[^:]*')
			clients = clients + ((alive or java[client]) and 0 or 1)
			java[client] = true
		end
	end
	return living, clients
end

-- The waiters {owner, note}: those of the queue, then the others that left a note, the longest wait first. Also returns
-- how many there are, which may be more.
local function waiters_of(name, queue)
	local prefix, from, is_queued = prefixed('holdfast_waiter', name), string.format('%.0f', now), {}
	local waiters, others = {}, {}
	for i, owner in ipairs(queue) do
		is_queued[owner] = true
		waiters[i] = {owner, i <= most and read_note(prefix .. ':' .. owner) or ''}
	end
	local noted = redis.pcall('zrangebyscore', prefix, from, '+inf', 'limit', 0, most)
	for _, owner in ipairs(noted) do
		if not is_queued[owner] then
			local note = read_note(prefix .. ':' .. owner)
			table.insert(others, {owner, note, tonumber(string.match(note, '^[^\n]*\n[^\n]*\n%d+ (%d+)')) or now})
		end
	end
	table.sort(others, function(a, b) return a[3] < b[3] end)
	for _, waiter in ipairs(others) do
		table.insert(waiters, waiter)
	end
	local all = #noted == most and redis.pcall('zcount', prefix, from, '+inf')
	return waiters, #waiters + (type(all) == 'number' and all - most or 0)
end

-- Those that listen for the release, and Java's in a queue, where each listens on a channel of its own. Waiters that
-- left a note do not all listen: those of a spin lock never do.
local function count_clients(name, kind, waiters, java)
	local channel = kind == 'permits' and 'redisson_sc' or
		(kind == 'read' or kind == 'write') and 'redisson_rwlock' or 'redisson_lock__channel'
	local listening = redis.pcall('pubsub', ARGV[1] == 'SPUBLISH' and 'shardnumsub' or 'numsub', prefixed(channel, name))
	if listening.err then
		return ''
	end
	local known, clients = {}, 0
	for _, waiter in ipairs(waiters) do
		-- Permits have no client in their id, but their notes name the process.
		local client = string.match(waiter[1], '^([^:]*):') or string.match(waiter[2], '^[^\n]*\n([^\n]*\n%d+)')
		clients = clients + (known[client or waiter[1]] and 0 or 1)
		known[client or waiter[1]] = true
	end
	return math.max(clients, tonumber(listening[2]) + java)
end

local function row(name, kind, ttl, holders, queue, java)
	local token = redis.pcall('get', prefixed('redisson_lock_token', name))
	local descriptions = prefixed('holdfast_holder', name)
	local waiters, all_waiters = waiters_of(name, queue)
	local entries, size, first = {}, #name + 250, kind
	local shown_holders, shown_waiters = 0, 0
	for i = 1, math.min(#holders, most) do
		local text = read_note(descriptions .. ':' .. holders[i][1])
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
		local owner = string.gsub(waiters[i][1], ':write$', '')
		local entry = field(owner) .. field(waiters[i][2])
		if size + #entry > room then
			break
		end
		size, shown_waiters = size + #entry, i
		table.insert(entries, entry)
	end
	return field(name) .. field(first) .. field(ttl) ..
		field(type(token) == 'string' and string.match(token, '^%d+$') or '') ..
		field(string.format('%.0f', now)) .. field(count_clients(name, kind, waiters, java)) ..
		field(#holders) .. field(all_waiters) .. field(shown_holders) .. field(shown_waiters) ..
		table.concat(entries)
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
	local queue, java = queue_of(name)
	kind = kind or mode or (#queue > 0 and 'fair' or 'reentrant')
	return row(name, kind, redis.call('pttl', name), holders, queue, java)
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
		holders, {}, 0)
end

local function read_name(name)
	local kind = redis.call('type', name).ok
	if kind == 'hash' then
		return read_hash(name)
	elseif kind == 'string' then
		local braced = string.find(name, '{', 1, true) and name or '{' .. name .. '}'
		return redis.pcall('exists', braced .. ':timeout') == 1 and read_permits(braced .. ':timeout')
	end
	local queue, java = {}, 0
	if kind == 'none' then
		queue, java = queue_of(name)
	end
	return #queue > 0 and row(name, 'fair', -2, {}, queue, java)
end

if KEYS[1] then
	return {'0', read_name(KEYS[1]) or nil}
elseif ARGV[2] == 'names' then
	local rows, left = {'0'}, 110000
	for i = 3, #ARGV do
		room = math.floor(left / (#ARGV - i + 1))
		local found = read_name(ARGV[i])
		if found then
			left = left - #found
			table.insert(rows, found)
		end
	end
	return rows
end
-- Locks are hashes and permits are sorted sets, so one walk over each type follows the other. The name of
-- permits is only a part of their key, so the caller matches it against the pattern.
local kind, at = string.match(ARGV[2], '^(%a+):(%d+)$')
kind, at = kind or 'hash', at or '0'
local pattern = kind == 'zset' and '*:timeout' or ARGV[3]
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
