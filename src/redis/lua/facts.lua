-- Reports what matters to locks about the server.
--
-- Returns texts: 'name=value'
local facts = {}
for line in string.gmatch(redis.call('info'), '[^\r\n]+') do
	local name, value = string.match(line, '^([%w_]+):(.*)$')
	if name then
		facts[name] = value
	end
end
local rows = {}
for _, name in ipairs({'redis_version', 'valkey_version', 'server_name', 'redis_mode', 'server_mode', 'role', 'run_id',
	'connected_slaves', 'master_link_status', 'maxmemory', 'maxmemory_policy', 'used_memory',
	'aof_enabled', 'aof_last_write_status', 'rdb_last_bgsave_status', 'loading',
	'uptime_in_seconds', 'connected_clients', 'maxclients'}) do
	if facts[name] then
		table.insert(rows, name .. '=' .. facts[name])
	end
end
local time = redis.call('time')
table.insert(rows, 'time_us=' .. string.format('%.0f', time[1] * 1000000 + time[2]))
return rows
