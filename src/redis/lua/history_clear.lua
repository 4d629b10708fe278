-- Removes the history.
--
-- KEYS: [the stream, on a Cluster]
-- ARGV: stream
-- Returns the number of entries that it had
--         {'conflict', why}: the key is not a stream; nothing was changed
local stream = ARGV[1]
local kind = redis.call('type', stream).ok
if kind == 'none' then
	return 0
elseif kind ~= 'stream' then
	return {'conflict', 'the key of the history holds something else'}
end
local entries = redis.call('xlen', stream)
redis.call('del', stream)
return entries
