-- Identifies the server.
--
-- Returns the ids of the process and of the data. Two servers that share one of them are the same server, or one is
-- a replica of the other.
local run = string.match(redis.call('info', 'server'), 'run_id:(%w+)')
local data = string.match(redis.call('info', 'replication'), 'master_replid:(%w+)')
return (run or '') .. ' ' .. (data or '')
