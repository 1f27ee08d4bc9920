import type { Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'

export type HubTime = Awaited<ReturnType<typeof openHubTime>>

/** The clocks of a node. `monotonic` measures durations: setting the wall clock does not change it. */
interface TimeSources {
  /** Milliseconds since the epoch. */
  clock: () => number
  /** Milliseconds since an arbitrary instant, like `performance.now()`. */
  monotonic: () => number
}

/**
 * If the wall clock and the monotonic clock advance by amounts that differ by more than this, someone has set the wall
 * clock; milliseconds.
 */
const jumpMs = 60_000

const prefix = 'time/'
const key = `${prefix}hub`

/**
 * Hub time: how long the hub has run, over all starts and nodes. Sessions expire by hub time, so neither a jump of the
 * clock nor a stop of the hub deletes sessions. Nodes share the value through the store, and the highest value counts.
 * Between two values, each node adds the time that its own monotonic clock has measured.
 */
export async function openHubTime(parts: { store: Store; isLeader: () => boolean; log: Log } & TimeSources) {
  const { store, isLeader, log, clock, monotonic } = parts
  let base = 0
  let basedAt = monotonic()
  let checked = { wall: clock(), monotonic: monotonic() }
  const stored = await store.get(key)
  if (stored) {
    const { ran, wall } = readTime(stored)
    base = ran
    // Warns only if the clock was set back. A later time than in the last run is no fault: the hub was off meanwhile.
    if (wall - checked.wall > jumpMs) warn(checked.wall - wall, 'the clock is behind that of the last run')
  }
  store.onOthers(prefix, (change) => {
    if (!('put' in change)) return
    const { ran } = readTime(change.value)
    if (ran <= now()) return
    base = ran
    basedAt = monotonic()
  })

  return {
    /** The hub time now, milliseconds. */
    now,

    /** For a client that disconnects now: the instant by the wall clock, and the hub time. Both in milliseconds. */
    gone: () => ({ disconnectedAt: clock(), offlineAt: now() }),

    /**
     * Stores the hub time. One node does this for all nodes. A crash loses the hub time since the last call: sessions
     * then expire later, never too soon.
     */
    async save(): Promise<void> {
      if (!isLeader()) return
      await store.commit([{ put: key, value: JSON.stringify({ ran: Math.round(now()), wall: clock() }) }])
    },

    /** Warns if the wall clock was set since the last call. */
    checkClock(): void {
      const before = checked
      checked = { wall: clock(), monotonic: monotonic() }
      const jump = checked.wall - before.wall - (checked.monotonic - before.monotonic)
      if (Math.abs(jump) > jumpMs) warn(jump, 'the clock has jumped')
    },
  }

  function now(): number {
    return base + monotonic() - basedAt
  }

  function warn(jump: number, message: string): void {
    log.warn({ jumpSeconds: Math.round(jump / 1000), now: new Date(clock()).toISOString() }, message)
  }
}

function readTime(value: Buffer): { ran: number; wall: number } {
  return JSON.parse(value.toString())
}
