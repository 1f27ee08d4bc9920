-- Applies a group of commits. Redis does not roll back a script that fails. So the script decides everything before its
-- first write, and no write can fail. If a group stores no new value, the first write is a deletion. Redis then allows
-- the other writes even when its memory is full.
--
-- The answer is like `ID 3,5 17`. `ID` is the id of the group's log entry. `3,5` are the indexes of the failed
-- conditions, counted from 1. `17` is the first number taken, if any. A group of which other nodes need not hear has no
-- log entry: it has no effect, or its changes are quiet. Its answer begins with `=` and the id of the last log entry. A node that has read the log up to this id knows why
-- conditions failed.
--
-- A group that is sent again gets the same answer as before. The node may send the group over a new connection. WAIT
-- covers only writes of the connection that asks. So the script writes something again (EXPIRE). A group with a lower
-- number than the last group of its node is refused. The node has given up such a group.

local values, keys, log, head, marks, writer = unpack(KEYS)
local node, number, changes, markEvery = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local conditions, taken, read, fenceKey, fenceValue = ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8], ARGV[9]

local last = redis.call('GET', writer)
if last then
  local lastNumber, answer = string.match(last, '^(%d+) (.*)$')
  if tonumber(lastNumber) == number then
    redis.call('EXPIRE', writer, 86400)
    return answer
  end
  if tonumber(lastNumber) > number then return redis.error_reply('ERR overtaken by a later commit') end
end

local refusal = refuse(values, keys, log, head, read)
if refusal then return refusal end

if fenceKey then
  local stored = redis.call('HGET', values, fenceKey)
  if not stored or string.sub(stored, 9) ~= fenceValue then
    return redis.error_reply('FENCED the membership is gone')
  end
end

-- A write that the user of Redis may not make would end the script half-way. Redis before 7.0 cannot be asked.
local writes = {
  { 'DEL', writer }, { 'SET', writer, '', 'EX', 1 },
  { 'XADD', log, '*', '', '' }, { 'XTRIM', log, 'MINID', START },
  { 'HSET', values, '', '' }, { 'HDEL', values, '' }, { 'HINCRBY', head, '', 1 },
  { 'ZADD', keys, 0, '' }, { 'ZREM', keys, '' }, { 'RPUSH', marks, '' }, { 'LPOP', marks },
}
for _, write in ipairs(redis.acl_check_cmd and writes or {}) do
  if not redis.acl_check_cmd(unpack(write)) then
    return redis.error_reply('NOPERM its user may not run ' .. write[1])
  end
end

local times = {}
local function storedTime(key)
  if times[key] == nil then
    local stored = redis.call('HGET', values, key)
    times[key] = stored and struct.unpack('>d', stored) or 0 / 0
  end
  return times[key]
end

local base = taken > 0 and tonumber(redis.call('HGET', head, 'number') or 0) + 1
local numberFormat = '%0' .. DIGITS .. '.0f'
local function numberAt(offset)
  return string.format(numberFormat, base + tonumber(offset))
end

local effects, withoutEffect = {}, {}
local grows = false
-- Whether other nodes must hear of the group: a change that has an effect is not quiet.
local isLogged = false
local at, nth = 1, 0

-- Only for groups with conditions: the last effect on each key, and the next commit that has conditions.
local latest = #conditions > 0 and {}
local failed, judgeAt, judged, skipTo = {}, 1, 0, 0
local nextJudged = latest and struct.unpack('>I4', conditions) or 0

local function entryOf(effect)
  local _, from, to, isNumbered = unpack(effect)
  if not isNumbered then return string.sub(changes, from, to) end
  local numberEnd = from + 7 + DIGITS
  return string.sub(changes, from, from + 7) .. numberAt(string.sub(changes, from + 8, numberEnd)) ..
    string.sub(changes, numberEnd + 1, to)
end

local function stored(key)
  local effect = latest[key]
  if not effect then return redis.call('HGET', values, key) end
  return effect[2] and entryOf(effect)
end

local function holds(kind, key, value, time)
  local entry = stored(key)
  if kind == CONDITION_ABSENT then return not entry end
  if kind == CONDITION_NOT_NEWER_THAN then return not entry or not (struct.unpack('>d', entry) > time) end
  if not entry or kind == CONDITION_PRESENT then return entry end
  if kind == CONDITION_VALUE then return string.sub(entry, 9) == value end
  return struct.unpack('>d', entry) == time
end

local function judge()
  while nextJudged == nth + 1 do
    local _, count, many = struct.unpack('>I4I4I4', conditions, judgeAt)
    local hasFailed = false
    judgeAt = judgeAt + 12
    for condition = judged + 1, judged + many do
      local kind, keySize, valueSize, time = struct.unpack('>BI4I4d', conditions, judgeAt)
      local valueAt = judgeAt + 17 + keySize
      local key = string.sub(conditions, judgeAt + 17, valueAt - 1)
      judgeAt = valueAt + valueSize
      if not hasFailed and not holds(kind, key, string.sub(conditions, valueAt, judgeAt - 1), time) then
        hasFailed = true
        failed[#failed + 1] = condition
        skipTo = nth + count
      end
    end
    judged = judged + many
    nextJudged = judgeAt <= #conditions and struct.unpack('>I4', conditions, judgeAt) or 0
  end
end

while at <= #changes do
  if nextJudged == nth + 1 then judge() end
  nth = nth + 1
  local kind, keySize, valueSize, horizon = struct.unpack('>BI4I4d', changes, at)
  local timeAt = at + 17 + keySize
  local key = string.sub(changes, at + 17, timeAt - 1)
  local time = struct.unpack('>d', changes, timeAt)
  at = timeAt + 8 + valueSize
  local isQuiet = kind > KIND_QUIET
  if isQuiet then kind = kind - KIND_QUIET end
  if kind == KIND_KEY or kind == KIND_BOTH then
    key = string.sub(key, 1, -DIGITS - 1) .. numberAt(string.sub(key, -DIGITS))
  end
  if nth <= skipTo then
    withoutEffect[#withoutEffect + 1] = nth
  elseif kind == KIND_TELL then
    grows = true
    isLogged = true
  else
    local stays = false
    if time == time then
      local stored = storedTime(key)
      stays = stored > time and stored <= horizon
    end
    if stays then
      withoutEffect[#withoutEffect + 1] = nth
    else
      local effect
      if kind == KIND_DEL then
        times[key] = 0 / 0
        effect = { key }
      else
        grows = true
        times[key] = time
        effect = { key, timeAt, at - 1, kind == KIND_VALUE or kind == KIND_BOTH }
      end
      effects[#effects + 1] = effect
      if not isQuiet then isLogged = true end
      if latest then latest[key] = effect end
    end
  end
end
if nextJudged == nth + 1 then judge() end

if not grows then redis.call('DEL', writer) end
local previous = redis.call('HGET', head, 'id') or '0-0'
local id = previous
local outcome = table.concat(failed, ',')
local first = base and string.format('%.0f', base)
if isLogged then
  id = redis.call('XADD', log, '*',
    'writer', node .. ' ' .. ARGV[2] .. ' ' .. outcome, 'previous', previous,
    'withoutEffect', table.concat(withoutEffect, ','), 'changes', changes,
    unpack(first and { 'base', first } or {}))
end
if first then redis.call('HINCRBY', head, 'number', taken) end
local answer = (id == previous and '=' or '') .. id .. ' ' .. outcome .. (first and ' ' .. first or '')
redis.call('SET', writer, ARGV[2] .. ' ' .. answer, 'EX', 86400)

for _, effect in ipairs(effects) do
  local key = effect[1]
  if effect[2] then
    if redis.call('HSET', values, key, entryOf(effect)) == 1 then
      redis.call('ZADD', keys, 0, key)
    end
  elseif redis.call('HDEL', values, key) == 1 then
    redis.call('ZREM', keys, key)
  end
end

if id == previous then return answer end
redis.call('HSET', head, 'id', id)
if redis.call('HINCRBY', head, 'size', #changes + 200) >= markEvery then
  redis.call('HSET', head, 'size', 0)
  if redis.call('RPUSH', marks, id) > LOG_MARKS then
    redis.call('XTRIM', log, 'MINID', redis.call('LPOP', marks))
  end
end
return answer
