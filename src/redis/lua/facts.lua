-- Reports what matters to locks about the server, its replicas and its cluster.
--
-- ARGV: command that publishes
-- Returns texts: 'name=value'
local facts = {publish = ARGV[1]}
for line in string.gmatch(redis.call('info'), '[^\r\n]+') do
	local name, value = string.match(line, '^([%w_]+):(.*)$')
	if name then
		facts[name] = value
	end
end

-- slave0:ip=10.0.0.2,port=6379,state=online,offset=815,lag=1
local online, lag = 0, 0
for i = 0, tonumber(facts['connected_slaves'] or 0) - 1 do
	local state, own = string.match(facts['slave' .. i] or '', 'state=(%w+).*,lag=(%d+)')
	online = online + (state == 'online' and 1 or 0)
	lag = math.max(lag, tonumber(own or 0))
end
facts['replicas_online'], facts['replica_lag'] = online, lag

local function count_slots(words)
	local count = 0
	for first, last in string.gmatch(words, ' (%d+)%-?(%d*)') do
		count = count + (last == '' and 1 or last - first + 1)
	end
	return count
end

-- A node's line: id address flags its-master ping pong epoch link slots
local function read_cluster(lines)
	local masters, slots, replicas, has_replica = {}, 0, 0, {}
	for line in string.gmatch(lines, '[^\n]+') do
		local id, address, flags, master, words =
			string.match(line, '^(%S+) ([^@ ]+)%S* (%S+) (%S+) %S+ %S+ %S+ %S+(.*)$')
		flags = ',' .. flags .. ','
		words = string.gsub(words, '%[%S+%]', '')
		if string.find(flags, ',myself,', 1, true) then
			facts['cluster_node'] = address
		end
		local is_gone = string.find(flags, ',fail,', 1, true) or string.find(flags, ',noaddr,', 1, true)
		if is_gone or string.find(flags, ',handshake,', 1, true) then
			-- It serves nothing.
		elseif not string.find(flags, ',master,', 1, true) then
			replicas = replicas + 1
			has_replica[master] = true
		elseif count_slots(words) > 0 then
			table.insert(masters, id)
			slots = slots + count_slots(words)
		end
	end
	local bare = 0
	for _, id in ipairs(masters) do
		bare = bare + (has_replica[id] and 0 or 1)
	end
	facts['cluster_masters'] = #masters
	facts['cluster_masters_bare'] = bare
	facts['cluster_replicas'] = replicas
	facts['cluster_slots'] = slots
end
if facts['cluster_enabled'] == '1' then
	read_cluster(redis.call('cluster', 'nodes'))
end

local rows = {}
for _, name in ipairs({'redis_version', 'valkey_version', 'server_name', 'redis_mode', 'server_mode', 'role', 'run_id',
	'connected_slaves', 'master_link_status', 'maxmemory', 'maxmemory_policy', 'used_memory',
	'aof_enabled', 'aof_last_write_status', 'rdb_last_bgsave_status', 'loading',
	'uptime_in_seconds', 'connected_clients', 'maxclients', 'publish',
	'min_slaves_good_slaves', 'replica_lag', 'replicas_online', 'cluster_enabled', 'cluster_node',
	'cluster_masters', 'cluster_masters_bare', 'cluster_replicas', 'cluster_slots'}) do
	if facts[name] then
		table.insert(rows, name .. '=' .. facts[name])
	end
end
local time = redis.call('time')
table.insert(rows, 'time_us=' .. string.format('%.0f', time[1] * 1000000 + time[2]))
return rows
