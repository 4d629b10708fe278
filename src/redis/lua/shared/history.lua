-- The history: a stream with an entry for the beginning and for the end of each hold. Its arguments follow all others
-- and are removed from ARGV: the stream, about how many entries it keeps, for how many seconds it lasts after the
-- latest or '0' if it does not expire, the kind of lock, how long the owner has waited or has held in ms or '', how the
-- hold ends, and a last one on which keep_lost(), keep_wait(), move.lua and the scripts that force have something to
-- say. An entry that cannot be added never fails the verb: `unkept` is the reason. It is added after the lock was
-- changed, so that a full server refuses what it would refuse without a history.
local given = #ARGV
local stream, most, lasts, kind, ms, ending, also = unpack(ARGV, given - 6)
for i = given, given - 6, -1 do
	ARGV[i] = nil
end
local unkept

local function keep(event, owner, ...)
	local added = redis.pcall('xadd', stream, 'maxlen', '~', most, '*',
		'e', event, 'n', KEYS[1], 'o', owner, 'k', kind, ...)
	if type(added) == 'string' then
		return lasts == '0' or redis.pcall('expire', stream, lasts)
	end
	-- While a slot of a Cluster is being moved, its streams can be at the other node already.
	if not string.find(added.err, 'non local key', 1, true) then
		unkept = string.gsub(added.err, '^@user_script: %d+: ', '') -- the same line of log for all scripts
	end
end

-- A token that is nil or false and an empty `about` leave their fields out.
local function keep_grant(owner, token, about, text)
	local fields = {'w', ms}
	local host, pid = string.match(about or '', '\n(.*)\n(.*)$')
	if token then
		table.insert(fields, 't')
		table.insert(fields, token)
	end
	for i, value in ipairs(host and {host, pid, text} or {}) do
		table.insert(fields, string.sub('hpx', i, i))
		table.insert(fields, value)
	end
	keep('g', owner, unpack(fields))
end

local function keep_end(owner)
	keep(ending, owner, 'd', ms)
end

-- The server no longer has the hold. Its owner says once that it was lost.
local function keep_lost(owner)
	if also == '1' then
		keep_end(owner)
	end
end

-- The server has never had the hold: the owner waited for it, and gave up some time ago.
local function keep_wait(owner)
	local event, waited, ago, host, pid, text = string.match(also, '^([tc]) (%d+) (%d+)\n([^\n]*)\n?([^\n]*)\n?(.*)$')
	if event and host ~= '' then
		keep(event, owner, 'w', waited, 'd', ago, 'h', host, 'p', pid, 'x', text)
	elseif event then
		keep(event, owner, 'w', waited, 'd', ago)
	end
end

local function keep_gone(owner)
	keep_lost(owner)
	keep_wait(owner)
end

-- The entry names the client that forces by its host and process id, if they are known.
local function keep_forced(owner)
	local host, pid = string.match(also, '^(.*)\n(.*)$')
	if host then
		keep('f', owner, 'h', host, 'p', pid)
	else
		keep('f', owner)
	end
end
