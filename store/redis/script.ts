import { createHash } from 'node:crypto'
import { digits } from '../commit.ts'
import { conditionKinds, kinds } from './changes.ts'

export type Argument = string | number | Buffer

/** Sends one command. Rejects with the error of Redis or of the connection. */
export type Send = (command: string, args: readonly Argument[]) => Promise<unknown>

export type Keys = ReturnType<typeof keysOf>

/** The Redis keys of one store. The braces put all keys in one hash slot: a script cannot use several. */
export function keysOf(space: string) {
  const below = (name: string) => `{${space}}:2:${name}`
  return {
    /** Hash of 3.0.0-beta.1, as `values`. 3.0.0-beta.2 has moved it to `values`. */
    formerValues: `{${space}}:values`,
    /** Hash: key → event time and value. */
    values: below('values'),
    /** Sorted set: all keys, in the order of their bytes. */
    keys: below('keys'),
    /** Stream: the log of changes. */
    log: below('log'),
    /**
     * Hash with three fields:
     * - `id`: the id of the last log entry
     * - `size`: bytes of the log after the newest mark
     * - `number`: the last number that a commit took
     */
    head: below('log-head'),
    /** List of marks: ids of log entries, about `markEvery` bytes apart. The script cuts the log at the oldest mark. */
    marks: below('log-marks'),
    /** String: the number of a node's last group, and the answer of the script. */
    writer: (node: string) => below(`writer:${node}`),
  }
}

/** The position before the first entry of the log. */
export const start = '0-0'

/**
 * Refuses the node (LOST) if the log no longer has the entry `read`. After a failover or a restored backup, the node
 * may know data that Redis does not have.
 */
const refuseLua = `
local function refuse(log, read)
  if read ~= '${start}' and #redis.call('XRANGE', log, read, read) == 0 then
    return redis.error_reply('LOST an entry of the log that the node knows')
  end
end
`

/** Maximum number of marks. A further mark removes the oldest mark, and the log before that mark. */
export const logMarks = 16

/**
 * Applies a group of commits. Redis does not roll back a script that fails. So the script decides everything before its
 * first write, and no write can fail. If a group stores no new value, the first write is a deletion. Redis then allows
 * the other writes even when its memory is full.
 *
 * The answer is like `ID 3,5 17`. `ID` is the id of the group's log entry. `3,5` are the indexes of the failed
 * conditions, counted from 1. `17` is the first number taken, if any. A group without effect has no log entry. Its
 * answer begins with `=` and the id of the last log entry. A node that has read the log up to this id knows why
 * conditions failed.
 *
 * A group that is sent again gets the same answer as before. The node may send the group over a new connection. WAIT
 * covers only writes of the connection that asks. So the script writes something again (EXPIRE). A group with a lower
 * number than the last group of its node is refused. The node has given up such a group.
 */
const commitLua = `${refuseLua}
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

local refusal = refuse(log, read)
if refusal then return refusal end

if fenceKey then
  local stored = redis.call('HGET', values, fenceKey)
  if not stored or string.sub(stored, 9) ~= fenceValue then
    return redis.error_reply('FENCED the membership is gone')
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
local function numberAt(offset)
  return string.format('%0${digits}.0f', base + tonumber(offset))
end

local effects, withoutEffect = {}, {}
local grows = false
local at, nth = 1, 0

-- Only for groups with conditions: the last effect on each key, and the next commit that has conditions.
local latest = #conditions > 0 and {}
local failed, judgeAt, judged, skipTo = {}, 1, 0, 0
local nextJudged = latest and struct.unpack('>I4', conditions) or 0

local function entryOf(effect)
  local _, from, to, isNumbered = unpack(effect)
  if not isNumbered then return string.sub(changes, from, to) end
  local numberEnd = from + 7 + ${digits}
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
  if kind == ${conditionKinds.absent} then return not entry end
  if kind == ${conditionKinds.notNewerThan} then return not entry or not (struct.unpack('>d', entry) > time) end
  if not entry or kind == ${conditionKinds.present} then return entry end
  if kind == ${conditionKinds.value} then return string.sub(entry, 9) == value end
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
  if kind == ${kinds.key} or kind == ${kinds.both} then
    key = string.sub(key, 1, -${digits + 1}) .. numberAt(string.sub(key, -${digits}))
  end
  if nth <= skipTo then
    withoutEffect[#withoutEffect + 1] = nth
  elseif kind == ${kinds.tell} then
    grows = true
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
      if kind == ${kinds.del} then
        times[key] = 0 / 0
        effect = { key }
      else
        grows = true
        times[key] = time
        effect = { key, timeAt, at - 1, kind == ${kinds.value} or kind == ${kinds.both} }
      end
      effects[#effects + 1] = effect
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
if #withoutEffect < nth then
  id = redis.call('XADD', log, '*',
    'writer', node .. ' ' .. ARGV[2] .. ' ' .. outcome, 'previous', previous,
    'withoutEffect', table.concat(withoutEffect, ','), 'changes', changes,
    unpack(first and { 'base', first } or {}))
end
if first then redis.call('HINCRBY', head, 'number', taken) end
local answer = (id == previous and '=' or '') .. id .. ' ' .. outcome .. (first and ' ' .. first or '')
redis.call('SET', writer, ARGV[2] .. ' ' .. answer, 'EX', 86400)
if id == previous then return answer end

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

redis.call('HSET', head, 'id', id)
if redis.call('HINCRBY', head, 'size', #changes + 200) >= markEvery then
  redis.call('HSET', head, 'size', 0)
  if redis.call('RPUSH', marks, id) > ${logMarks} then
    redis.call('XTRIM', log, 'MINID', redis.call('LPOP', marks))
  end
end
return answer
`

/**
 * Reads a page of a range, forwards or backwards. The answer begins with the id of the last log entry: the page may
 * show all changes up to there.
 */
const pageLua = `${refuseLua}
local values, keys, log, head = unpack(KEYS)
local refusal = refuse(log, ARGV[6])
if refusal then return refusal end

local page, bytes = { redis.call('HGET', head, 'id') or '${start}' }, 0
local command = ARGV[5] == 'REV' and 'ZREVRANGEBYLEX' or 'ZRANGEBYLEX'
for _, key in ipairs(redis.call(command, keys, ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])) do
  local value = redis.call('HGET', values, key)
  page[#page + 1] = key
  page[#page + 1] = value
  bytes = bytes + #key + #value
  if bytes >= tonumber(ARGV[4]) then break end
end
return page
`

const numberLua = `${refuseLua}
return refuse(KEYS[1], ARGV[1]) or redis.call('HMGET', KEYS[2], 'id', 'number')
`

export const commitScript = createScript(commitLua)
export const pageScript = createScript(pageLua)
export const numberScript = createScript(numberLua)

/** Runs a script by its hash, or by its text if Redis does not know the hash. */
export function createScript(lua: string) {
  const hash = createHash('sha1').update(lua).digest('hex')
  return async (send: Send, keys: readonly string[], args: readonly Argument[]): Promise<unknown> => {
    const rest = [keys.length, ...keys, ...args]
    try {
      return await send('evalsha', [hash, ...rest])
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      return send('eval', [lua, ...rest])
    }
  }
}
