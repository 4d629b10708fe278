-- Creates a latch if there is none, and wakes the waiters. A repeat of a request that was done changes nothing.
--
-- KEYS: latch, record
-- ARGV: count, request id, how long the request is remembered in ms, command that publishes, channel
-- Returns 1: created, 0: the key existed already
--         {'warning', command, error, one of these}: the message could not be published; all else was done
-- include: try
local key, record, id = KEYS[1], KEYS[2], ARGV[2]
-- include: record
-- include: create_once
redis.call('set', key, ARGV[1])
try(ARGV[4], ARGV[5], '1')
return reply(1)
