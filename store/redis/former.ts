import { setTimeout as delay } from 'node:timers/promises'
import { contentOf } from '../stored-value.ts'
import { createClients, nameOf, type RedisServer } from './client.ts'
import { createConnection } from './connection.ts'
import { createScript, formerKeysOf, keysOf } from './script.ts'

/** Time to watch for former nodes: each gives a sign of life per second, and counts as dead after five missing ones. */
const watchMs = 7_000
const timeoutMs = 5_000

/**
 * Moves the store of the former release to the keys of this release, in one step and unchanged. False if there is none.
 * Rejects while nodes of the former release use it. A notice under a former key keeps such nodes from starting again,
 * because they know only the former keys.
 */
export async function moveFormerStore(of: {
  server: RedisServer
  project: string
  stage: string
  watchMs?: number
  /** Called with the nodes that did not sign off, before this node waits for their signs of life. */
  onMembers: (names: readonly string[]) => void
}): Promise<boolean> {
  const [former, own] = [formerKeysOf(`${of.project}:${of.stage}`), keysOf(`${of.project}:${of.stage}`)]
  const connect = await createClients(of.server, timeoutMs)
  const connection = createConnection(connect('hub-former'), { timeoutMs, quietMs: timeoutMs })
  const ask = (command: string, args: string[]) => connection.ask((send) => send(command, args))
  const keys = [former.values, former.keys, former.head, former.log, former.marks, own.values, own.keys]
  /** `nothing` to move, `moved`, or `changed` because the log does not end at `id`, with the id where it ends. */
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
      // If none is left, the last node has just signed off: the move is tried again.
      if (names.length > 0)
        throw new Error(`${running(of.server, names)}: stop all of them, then start this one again`)
    }
  } finally {
    connection.close()
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

/** Replaces a hash that a former node reads first. That node then says that Redis refuses, and ends. */
const notice = 'a newer release has taken over this store'

/** One script, so that only one of two starting nodes moves the store, and no commit comes in between. */
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
