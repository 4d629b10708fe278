-- Sets `answer` to what the request `id` answered when it ran before; nil if it has not run. If the record is of a
-- later request, this one was delayed on its way: nobody waits for its answer any more, and it must not run.
local answer
local recorded = redis.call('get', record)
if recorded then
	local number, text = string.match(recorded, ':(%d+) (.*)$')
	local mine = tonumber(string.match(id, ':(%d+)$'))
	if number and tonumber(number) == mine then
		answer = text
	elseif number and tonumber(number) > mine then
		return redis.error_reply('LATE a later request has used its record')
	end
end
