-- Continues if this request is the first that creates the key, and records that it has.
if answer then
	return tonumber(answer)
end
if redis.call('exists', key) == 1 then
	redis.pcall('set', record, id .. ' 0', 'px', ARGV[3])
	return 0
end
redis.call('set', record, id .. ' 1', 'px', ARGV[3])
