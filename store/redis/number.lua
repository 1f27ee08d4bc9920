-- Reads the id of the last log entry, and the last number that a commit took.

local values, keys, log, head = unpack(KEYS)
return refuse(values, keys, log, head, ARGV[1]) or redis.call('HMGET', head, 'id', 'number')
