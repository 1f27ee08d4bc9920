import { storeKeys } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'

export type HubTime = Awaited<ReturnType<typeof openHubTime>>

/** The clocks of a node. Setting the wall clock does not change `monotonic`. */
interface TimeSources {
  /** Milliseconds since the epoch. */
  clock: () => number
  /** Milliseconds since an arbitrary instant, like `performance.now()`. */
  monotonic: () => number
}

/** If the wall clock jumps further than this, someone has set the clock; milliseconds. */
const jumpMs = 60_000

const { prefix } = storeKeys.time
const key = `${prefix}hub`

/**
 * Hub time: how long the hub has run, over all starts and nodes. Sessions expire by hub time: neither a wrong wall
 * clock nor a stop of the hub must delete sessions (docs/decisions, "Sessions expire by the time the hub has run").
 * The highest stored value counts, plus the time that a node has measured since.
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
    // Warns only if the clock is behind the last run. A clock that is ahead is no fault: the hub was off meanwhile.
    if (wall - checked.wall > jumpMs) warn(checked.wall - wall, 'the clock is behind that of the last run')
  }
  store.onOthers(prefix, (_key, value) => {
    const { ran } = value ? readTime(value) : { ran: 0 }
    if (ran <= now()) return
    base = ran
    basedAt = monotonic()
  })

  return {
    /** The hub time now, milliseconds. */
    now,

    /** The time of a disconnection now: by the wall clock and in hub time, milliseconds. */
    gone: () => ({ disconnectedAt: clock(), offlineAt: now() }),

    /**
     * Stores the hub time, on the leader only. A crash loses the time since the last call: sessions then expire later,
     * never too soon.
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

  function warn(
    jump: number,
    message: 'the clock has jumped' | 'the clock is behind that of the last run',
  ): void {
    log.warn({ jumpSeconds: Math.round(jump / 1000), now: new Date(clock()).toISOString() }, message)
  }
}

function readTime(value: Buffer): { ran: number; wall: number } {
  return JSON.parse(value.toString())
}
