import { setTimeout as delay } from 'node:timers/promises'
import { contentOf } from '../stored-value.ts'
import { createClients, nameOf, type RedisServer } from './client.ts'
import { createConnection } from './connection.ts'
import { createScript, formerKeysOf, keysOf } from './script.ts'

/**
 * How long to watch for signs of life, milliseconds. A node of the former release gives one per second, and counts as
 * dead after five missing signs.
 */
const watchMs = 7_000
const timeoutMs = 5_000

/**
 * Moves the store of the former release to the keys of this release. The move is one atomic step. Resolves with false
 * if there is no store to move. Rejects if nodes of the former release run. Their signs of life make the log grow,
 * which this function notices. Stores `notice` at a former key: nodes of the former release can then no longer start.
 */
export async function moveFormerStore(of: {
  server: RedisServer
  project: string
  stage: string
  watchMs?: number
  /** Called with the names of the registered nodes, before the wait for signs of life. */
  onMembers: (names: readonly string[]) => void
}): Promise<boolean> {
  const [former, own] = [formerKeysOf(`${of.project}:${of.stage}`), keysOf(`${of.project}:${of.stage}`)]
  const clients = await createClients(of.server, timeoutMs)
  const connection = createConnection(clients.connect('hub-former'), { timeoutMs, quietMs: timeoutMs })
  const ask = (command: string, args: string[]) => connection.ask((send) => send(command, args))
  const keys = [former.values, former.keys, former.head, former.log, former.marks, own.values, own.keys]
  /**
   * Moves the store if the last entry of its log is `id`. Resolves with one of these answers:
   * - `nothing`: there is no store to move
   * - `moved`
   * - `changed` and the id of the log's last entry, if this is not `id`
   */
  const move = async (id: string) =>
    String(await connection.ask((send) => moveScript(send, keys, [id, notice]))).split(' ')
  try {
    for (;;) {
      const [found, id = ''] = await move('unknown')
      if (found === 'nothing') return false
      const members = await readMembers()
      if (members.length > 0) {
        of.onMembers(members)
        await delay(of.watchMs ?? watchMs)
      }
      const [outcome] = await move(id)
      if (outcome !== 'changed') return outcome === 'moved'
      const names = await readMembers()
      // No names: the last node has just signed off, and the loop tries again.
      if (names.length > 0)
        throw new Error(`${running(of.server, names)}: stop all of them, then start this one again`)
    }
  } finally {
    connection.close()
    clients.close()
  }

  /** The names of the nodes that are registered in the former store, running or not. */
  async function readMembers(): Promise<string[]> {
    const found = await ask('zrangebylex', [former.keys, '[member/', '(member0'])
    const slots = Array.isArray(found) ? found.map(String) : []
    const values = await Promise.all(slots.map((slot) => ask('hget', [former.values, slot])))
    return values.flatMap((value) =>
      Buffer.isBuffer(value) ? [JSON.parse(contentOf(value).toString()).name] : [],
    )
  }
}

function running(server: RedisServer, names: readonly string[]): string {
  return `nodes of the former release run on ${nameOf(server)} (${names.join(', ')})`
}

/**
 * This string replaces a hash under one former key. A node of the former release reads that hash first. Redis refuses
 * to read a string as a hash, and the node ends.
 */
const notice = 'a newer release has taken over this store'

/** Redis runs a script atomically: no commit or second move comes in between. */
const moveScript = createScript(`
local formerValues, formerKeys, formerHead, formerLog, formerMarks, values, keys = unpack(KEYS)
if redis.call('EXISTS', formerValues) == 0 or redis.call('EXISTS', values) == 1 then return 'nothing' end
local id = redis.call('HGET', formerHead, 'id') or ''
if id ~= ARGV[1] then return 'changed ' .. id end
redis.call('RENAME', formerValues, values)
redis.call('RENAME', formerKeys, keys)
redis.call('DEL', formerHead, formerMarks)
redis.call('UNLINK', formerLog)
redis.call('SET', formerHead, ARGV[2])
return 'moved'
`)
