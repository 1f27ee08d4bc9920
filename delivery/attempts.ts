import { storeKeys } from '../store/keys.ts'
import { padded } from '../store/nodes/sequences.ts'
import type { Change, Store } from '../store/store.ts'
import type { Attempt } from './queue/work-item.ts'

/** Number of attempts that are kept for each queue. */
export const keptAttempts = 50

const { prefix } = storeKeys.attempt

export type Attempts = ReturnType<typeof createAttempts>

/** Keeps the last attempts of each queue. The commit that stores an outcome also stores the attempt. */
export function createAttempts(store: Store) {
  const logs = new Map<string, Promise<Entry[]>>()
  // Another node made an attempt: read the attempts of the queue again next time.
  store.onOthers(prefix, (change) => {
    if ('tell' in change) return
    logs.delete(decodeURIComponent(('put' in change ? change.put : change.del).split('/')[1] ?? ''))
  })

  return {
    /** The changes that store an attempt. `list` shows the attempt even if the commit fails. */
    async add(queue: string, attempt: Attempt): Promise<Change[]> {
      const log = await logOf(queue)
      const sequence = Math.max(Date.parse(attempt.time), (log.at(-1)?.sequence ?? 0) + 1)
      log.push({ sequence, attempt })
      const gone = log.splice(0, log.length - keptAttempts)
      return [
        { put: keyOf(queue, sequence), value: JSON.stringify(attempt) },
        ...gone.map((entry) => ({ del: keyOf(queue, entry.sequence) })),
      ]
    },

    /** The attempts of a queue, newest first. */
    list: async (queue: string): Promise<Attempt[]> =>
      (await logOf(queue)).map(({ attempt }) => attempt).reverse(),

    /** The changes that remove all attempts of a queue. */
    async drop(queue: string): Promise<Change[]> {
      const log = await logOf(queue)
      logs.delete(queue)
      return log.map(({ sequence }) => ({ del: keyOf(queue, sequence) }))
    },
  }

  function logOf(queue: string): Promise<Entry[]> {
    const known = logs.get(queue)
    if (known) return known
    const log = read(queue)
    logs.set(queue, log)
    log.catch(() => logs.delete(queue)) // read again next time
    return log
  }

  async function read(queue: string): Promise<Entry[]> {
    const entries: Entry[] = []
    for await (const [key, value] of store.range(`${prefix}${encodeURIComponent(queue)}/`)) {
      entries.push({ sequence: Number(key.split('/')[2]), attempt: JSON.parse(value.toString()) })
    }
    return entries
  }
}

interface Entry {
  /** Time of the attempt, milliseconds since the epoch, but always greater than the previous sequence. */
  sequence: number
  attempt: Attempt
}

function keyOf(queue: string, sequence: number): string {
  return `${prefix}${encodeURIComponent(queue)}/${padded(sequence)}`
}
