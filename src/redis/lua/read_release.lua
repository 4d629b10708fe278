-- Ends a read hold. The lock then lasts as long as the longest of the other read holds; without any it is removed,
-- and the waiters are woken. A repeat changes nothing.
--
-- KEYS: lock, key of the hold
-- ARGV: owner, message, command that publishes, channel, prefix of the keys of all read holds[, prefix of the holders'
--       descriptions[, how long the owner had waited in ms if that was noted]]
-- Returns integer: done
--         {'gone', ''}: the owner has no read hold
--         {'warning', command, error, one of these}: something besides the hold itself failed
--+ -- include: history
-- include: try
local key, hold = KEYS[1], KEYS[2]
local me, message, publish, channel, prefix, descriptions, waited = unpack(ARGV)
local held = redis.call('hdel', key, me) == 1
try('del', hold)
if descriptions then
	try('del', descriptions .. ':' .. me)
end
if not held then
	-- include: end_wait
	--+ keep_gone(me)
	return reply({'gone', ''})
end
--+ keep_end(me)
local fields = redis.call('hgetall', key)
local longest = -1
for i = 1, #fields, 2 do
	if fields[i] == 'mode' and fields[i + 1] == 'write' then
		return reply(1)
	end
	for count = tonumber(fields[i + 1]) or 0, 1, -1 do
		local other = prefix .. ':' .. fields[i] .. ':rwlock_timeout:' .. count
		local ttl = try('pttl', other)
		-- While a slot of a Cluster is being moved, the key of another hold may be at the other node. The node that
		-- the slot leaves refuses such a key. The node that it goes to says that the key does not exist, but refuses
		-- a command with several keys of which one is missing. Then the lock stays as it is: its time to live covers
		-- all holds.
		if not ttl or ttl == -2 and not try('exists', key, other) then
			return reply(1)
		end
		longest = math.max(longest, ttl)
	end
end
if longest > 0 then
	try('pexpire', key, longest)
else
	try('del', key)
	try(publish, channel, message)
end
return reply(1)
