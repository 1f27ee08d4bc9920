import { createHash } from 'node:crypto'
import { kinds } from './changes.ts'

export type Argument = string | number | Buffer

/** Sends one command. Rejects with what Redis or the connection says. */
export type Send = (command: string, args: readonly Argument[]) => Promise<unknown>

export type Keys = ReturnType<typeof keysOf>

/** The keys of one store. The braces keep them in one slot of a cluster, where a script may use them all. */
export function keysOf(space: string) {
  const below = (name: string) => `{${space}}:${name}`
  return {
    /** Hash: key → event time and value. */
    values: below('values'),
    /** Sorted set: all keys, in the order of their bytes. */
    keys: below('keys'),
    /** Stream: the log of changes. */
    log: below('log'),
    /** Hash: `id` of the last entry of the log, `size` of what was written since the last mark. */
    head: below('log-head'),
    /** List: ids in the log, with as many bytes between each and the next. */
    marks: below('log-marks'),
    /** What a node committed last: its number, and the id in the log. */
    writer: (node: string) => below(`writer:${node}`),
  }
}

/** Marks in the log. With one more the oldest goes, and the part of the log before it. */
export const logMarks = 16

/**
 * Decides, then writes: all of it, because nothing after the first write can fail. A group that only deletes
 * starts with a deletion, which Redis allows also when its memory is full.
 *
 * The number of the group tells a repetition from a new group, and keeps one out that was given up and
 * arrives late, after its successor.
 */
const commitLua = `
local values, keys, log, head, marks, writer = unpack(KEYS)
local node, number, changes, markEvery = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])

local last = redis.call('GET', writer)
if last then
  local lastNumber, lastId = string.match(last, '^(%d+) (.*)$')
  if tonumber(lastNumber) == number then return lastId end
  if tonumber(lastNumber) > number then return redis.error_reply('ERR overtaken by a later commit') end
end

local times = {}
local function storedTime(key)
  if times[key] == nil then
    local stored = redis.call('HGET', values, key)
    times[key] = stored and struct.unpack('>d', stored) or 0 / 0
  end
  return times[key]
end

local effects, withoutEffect = {}, {}
local grows = false
local at, nth = 1, 0
while at <= #changes do
  nth = nth + 1
  local kind, keySize, valueSize, horizon = struct.unpack('>BI4I4d', changes, at)
  local timeAt = at + 17 + keySize
  local key = string.sub(changes, at + 17, timeAt - 1)
  local time = struct.unpack('>d', changes, timeAt)
  at = timeAt + 8 + valueSize
  if kind == ${kinds.tell} then
    grows = true
  else
    local stays = false
    if time == time then
      local stored = storedTime(key)
      stays = stored > time and stored <= horizon
    end
    if stays then
      withoutEffect[#withoutEffect + 1] = nth
    elseif kind == ${kinds.put} then
      grows = true
      times[key] = time
      effects[#effects + 1] = { key, timeAt, at - 1 }
    else
      times[key] = 0 / 0
      effects[#effects + 1] = { key }
    end
  end
end

local function apply()
  for _, effect in ipairs(effects) do
    local key, from, to = unpack(effect)
    if from then
      if redis.call('HSET', values, key, string.sub(changes, from, to)) == 1 then
        redis.call('ZADD', keys, 0, key)
      end
    elseif redis.call('HDEL', values, key) == 1 then
      redis.call('ZREM', keys, key)
    end
  end
end

if not grows then apply() end
local previous = redis.call('HGET', head, 'id') or '0-0'
local id = redis.call('XADD', log, '*',
  'writer', node .. ' ' .. ARGV[2], 'previous', previous,
  'withoutEffect', table.concat(withoutEffect, ','), 'changes', changes)
if grows then apply() end

redis.call('SET', writer, ARGV[2] .. ' ' .. id, 'EX', 86400)
redis.call('HSET', head, 'id', id)
if redis.call('HINCRBY', head, 'size', #changes + 200) >= markEvery then
  redis.call('HSET', head, 'size', 0)
  if redis.call('RPUSH', marks, id) > ${logMarks} then
    redis.call('XTRIM', log, 'MINID', redis.call('LPOP', marks))
  end
end
return id
`

/** The next entries of a range, as many as are a moderate answer. */
const pageLua = `
local page, bytes = {}, 0
for _, key in ipairs(redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])) do
  local value = redis.call('HGET', KEYS[1], key)
  page[#page + 1] = key
  page[#page + 1] = value
  bytes = bytes + #key + #value
  if bytes >= tonumber(ARGV[4]) then break end
end
return page
`

export const commitScript = createScript(commitLua)
export const pageScript = createScript(pageLua)

/** A script by its hash; with its text where Redis does not know it, as after a restart. */
function createScript(lua: string) {
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
