-- Tells who the server is.
--
-- Returns words that two servers share if they are one, or one the replica of the other
local run = string.match(redis.call('info', 'server'), 'run_id:(%w+)')
local data = string.match(redis.call('info', 'replication'), 'master_replid:(%w+)')
return (run or '') .. ' ' .. (data or '')
