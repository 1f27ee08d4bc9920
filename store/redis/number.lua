-- Reads the id of the last log entry, and the last number that a commit took.

return refuse(KEYS[1], ARGV[1]) or redis.call('HMGET', KEYS[2], 'id', 'number')
