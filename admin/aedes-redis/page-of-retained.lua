-- Reads a page of retained messages. A value that is too large is replaced with its size in bytes.

local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 20)
for i = 2, #page[2], 2 do
  local size = #page[2][i]
  if size > tonumber(ARGV[2]) then page[2][i] = size end
end
return page
