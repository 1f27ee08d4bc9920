import type { Attempt } from '../event/outcome-schemas.ts'
import { digitsOf } from '../store/commit.ts'
import { storeKeys } from '../store/keys.ts'
import type { Change, Store } from '../store/store.ts'

/** Number of attempts that are kept for each queue. */
export const keptAttempts = 50
/** Number of stretches of events passed over that are kept for each queue. */
const keptStretches = 200

const { prefix } = storeKeys.attempt

export type Attempts = ReturnType<typeof createAttempts>

/** Keeps the last attempts of each queue. The commit that stores an outcome also stores the attempt. */
export function createAttempts(store: Store) {
  const logs = new Map<string, Promise<AttemptLog>>()
  // Another node made an attempt: read the attempts of the queue again next time.
  store.onOthers(prefix, (key) => void logs.delete(decodeURIComponent(key.split('/')[1] ?? '')))

  return {
    /** The changes that store an attempt. `list` shows the attempt even if the commit fails. */
    async add(queue: string, attempt: Attempt): Promise<Change[]> {
      return added(await logOf(queue), attempt)
    },

    /**
     * The changes that note events which were passed over at `time`, in the order of their livestreams. Events of a
     * livestream make one line, until a delivery is acknowledged.
     */
    async pass(queue: string, passed: readonly Passed[], time: string): Promise<Change[]> {
      const log = await logOf(queue)
      const byLivestream = new Map<string | null, Passed[]>()
      for (const one of passed) {
        byLivestream.set(one.livestreamId, [...(byLivestream.get(one.livestreamId) ?? []), one])
      }
      const acknowledged = log.tries.findLast(({ attempt }) => attempt.reason === null)?.sequence ?? 0
      return [...byLivestream].flatMap(([livestreamId, events]) => {
        const index = log.stretches.findIndex(
          ({ sequence, attempt: { stale } }) =>
            sequence > acknowledged && stale?.livestreamId === livestreamId,
        )
        const before = index < 0 ? undefined : log.stretches[index]
        const line = lineOf(livestreamId, events, before?.attempt.stale, time)
        if (!before || !line) return line ? added(log, line) : []
        log.stretches.splice(index, 1)
        return [{ del: keyOf(log, before.sequence) }, ...added(log, line)]
      })
    },

    /** The attempts of a queue, newest first. */
    async list(queue: string): Promise<Attempt[]> {
      const { tries, stretches } = await logOf(queue)
      const newestFirst = [...tries, ...stretches].sort((a, b) => b.sequence - a.sequence)
      return newestFirst.map(({ attempt }) => attempt)
    },

    /** Forgets the attempts of a queue in memory, because a commit failed. The next call reads them from the store. */
    forget: (queue: string): void => void logs.delete(queue),

    /** The changes that remove all attempts of a queue. */
    async drop(queue: string): Promise<Change[]> {
      const log = await logOf(queue)
      logs.delete(queue)
      return [...log.tries, ...log.stretches].map(({ sequence }) => ({ del: keyOf(log, sequence) }))
    },
  }

  function added(log: AttemptLog, attempt: Attempt): Change[] {
    const last = Math.max(log.tries.at(-1)?.sequence ?? 0, log.stretches.at(-1)?.sequence ?? 0)
    const sequence = Math.max(Date.parse(attempt.time), last + 1)
    const [entries, most] = attempt.stale ? [log.stretches, keptStretches] : [log.tries, keptAttempts]
    entries.push({ sequence, attempt })
    const changes: Change[] = [{ put: keyOf(log, sequence), value: JSON.stringify(attempt) }]
    if (entries.length <= most) return changes
    const gone = entries.splice(0, entries.length - most)
    return [...changes, ...gone.map((entry) => ({ del: keyOf(log, entry.sequence) }))]
  }

  function logOf(queue: string): Promise<AttemptLog> {
    const known = logs.get(queue)
    if (known) return known
    const log = read(queue)
    logs.set(queue, log)
    log.catch(() => logs.delete(queue)) // read again next time
    return log
  }

  async function read(queue: string): Promise<AttemptLog> {
    const log: AttemptLog = { path: `${prefix}${encodeURIComponent(queue)}/`, tries: [], stretches: [] }
    for await (const [key, value] of store.range(log.path)) {
      const attempt: Attempt = JSON.parse(value.toString())
      const entries = attempt.stale ? log.stretches : log.tries
      entries.push({ sequence: Number(key.split('/')[2]), attempt })
    }
    return log
  }
}

/** An event that was passed over. */
export interface Passed {
  livestreamId: string | null
  messageId: string
  /** When the hub accepted it, milliseconds since the epoch. */
  at: number
}

/** The line of events of one livestream that were passed over, with those of the stretch before. */
function lineOf(
  livestreamId: string | null,
  events: readonly Passed[],
  before: Attempt['stale'],
  time: string,
): Attempt | undefined {
  // One that was set aside is passed over after those that were accepted later.
  const inOrder = events.toSorted((a, b) => a.at - b.at)
  const [first] = inOrder
  const last = inOrder.at(-1)
  if (!first || !last) return undefined
  const times = [first.at, last.at].map((at) => new Date(at).toISOString())
  // ISO 8601 times sort correctly as texts.
  const [from = '', ...others] = [...times, ...(before ? [before.first, before.last] : [])].sort()
  const count = (before?.count ?? 0) + events.length
  const stale = { livestreamId, count, first: from, last: others.at(-1) ?? from }
  const reason = `not worth it any more: ${stale.count} accepted from ${stale.first} to ${stale.last}`
  return { messageId: last.messageId, time, status: null, duration: 0, reason, stale }
}

/** What is kept of a queue, oldest first: tries to deliver, and stretches of events that were passed over. */
interface AttemptLog {
  /** The keys of its records begin with it. */
  path: string
  tries: AttemptEntry[]
  stretches: AttemptEntry[]
}

interface AttemptEntry {
  /** Time of the attempt, milliseconds since the epoch, but always greater than the previous sequence. */
  sequence: number
  attempt: Attempt
}

function keyOf({ path }: AttemptLog, sequence: number): string {
  return path + digitsOf(sequence)
}
