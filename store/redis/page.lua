-- Reads a page of a range, forwards or backwards. The answer begins with the id of the last log entry: the page may
-- show all changes up to there.

local values, keys, log, head = unpack(KEYS)
local refusal = refuse(values, keys, log, head, ARGV[6])
if refusal then return refusal end

local page, bytes = { redis.call('HGET', head, 'id') or START }, 0
local command = ARGV[5] == 'REV' and 'ZREVRANGEBYLEX' or 'ZRANGEBYLEX'
for _, key in ipairs(redis.call(command, keys, ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])) do
  local value = redis.call('HGET', values, key)
  page[#page + 1] = key
  page[#page + 1] = value
  bytes = bytes + #key + #value
  if bytes >= tonumber(ARGV[4]) then break end
end
return page
