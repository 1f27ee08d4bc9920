-- Refuses the node (LOST) if the log no longer has the entry `read`. After a failover or a restored backup, the node
-- may know data that Redis does not have.
local function refuse(log, read)
  if read ~= START and #redis.call('XRANGE', log, read, read) == 0 then
    return redis.error_reply('LOST an entry of the log that the node knows')
  end
end
