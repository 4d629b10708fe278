-- Checks whether a request has taken permits of a semaphore, for a WAIT that follows. The record of the request is kept
-- for longer, so that there is a write: some servers consider a WAIT done if no write came before it.
--
-- KEYS: record
-- ARGV: request id, how long the request is remembered in ms
-- Returns 1 if it has taken them, else 0
local record, id = KEYS[1], ARGV[1]
-- include: record
if not answer or answer == '0' then
	return 0
end
redis.call('pexpire', record, math.max(redis.call('pttl', record), tonumber(ARGV[2])))
return 1
