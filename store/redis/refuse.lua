-- Refuses every node (PARTIAL) if one of the keys that commits write together is gone. Redis deletes single keys when its
-- memory is full and `maxmemory-policy` permits it.
--
-- Refuses the node (LOST) if the log no longer has the entry `read`. After a failover or a restored backup, the node
-- may know data that Redis does not have.
local function refuse(values, keys, log, head, read)
  local hasLog, hasHead = redis.call('EXISTS', log) == 1, redis.call('HGET', head, 'id') and true
  if redis.call('EXISTS', values, keys) == 1 or hasLog ~= hasHead then
    return redis.error_reply('PARTIAL a key of the store is gone')
  end
  if read ~= START and #redis.call('XRANGE', log, read, read) == 0 then
    return redis.error_reply('LOST an entry of the log that the node knows')
  end
end
