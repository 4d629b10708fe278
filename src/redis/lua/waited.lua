-- Lists the names of locks whose release somebody listens for.
--
-- ARGV: command that publishes, cursor, which is always '0', pattern
-- Returns {'0', then the names}: as many as fit into a reply. The caller matches them against the pattern again.
local most, room = 1000, 100000
local listing = ARGV[1] == 'SPUBLISH' and 'shardchannels' or 'channels'
-- What follows a set or a backslash could become a part of it, so the server then leaves nothing out.
local wanted = string.find(ARGV[3], '[%[\\]') and '*' or '*' .. ARGV[3] .. '*'
local names, is_known = {'0'}, {}

local function add(name)
	local size = #name + 16
	if #name > 0 and not is_known[name] and #names <= most and size <= room then
		is_known[name], room = true, room - size
		table.insert(names, name)
	end
end

for _, prefix in ipairs({'redisson_lock__channel:', 'redisson_rwlock:', 'redisson_sc:'}) do
	for _, channel in ipairs(redis.call('pubsub', listing, prefix .. wanted)) do
		local rest = string.sub(channel, #prefix + 1)
		-- Each waiter of a fair lock listens on a channel of its own.
		local tagged = string.match(rest, '^(.*):%x+%-%x+%-%x+%-%x+%-%x+:%d+$') or rest
		local name = string.match(tagged, '^{([^{]*)}$')
		-- Names with and without the braces have the same channel.
		if not name or redis.pcall('exists', tagged) == 1 then
			add(tagged)
		end
		add(name or '')
	end
end
return names
