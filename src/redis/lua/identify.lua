-- Identifies the server.
--
-- Returns two words; two servers that share one are the same, or one is a replica of the other
local run = string.match(redis.call('info', 'server'), 'run_id:(%w+)')
local data = string.match(redis.call('info', 'replication'), 'master_replid:(%w+)')
return (run or '') .. ' ' .. (data or '')
