import type { Observed } from './make-metric.ts'

/**
 * Longest time in milliseconds from the receipt of a PUBLISH until it is written to the last subscriber (service.md
 * §8).
 */
export const budgetMs = 220

/** Number of samples that the rolling percentiles are computed from. */
const windowSize = 4096

/** How long an event took in this node. `decided`, `stored`, `written`: milliseconds since the node received it. */
export interface EventStages {
  id: string
  event: string
  /** Position of the event's first message. A repeated event has a record at each of its positions. */
  position: number
  /** When the event was received, milliseconds since the epoch. */
  at: number
  decided: number
  stored: number
  /** Until the event was written to the last connected subscriber of this node. */
  written: number
}

/** The moments at which an event reached each stage in this node, by `performance.now()`. */
export interface Timing {
  readonly started: number
  decided: number
  stored: number
  /** Position of the first message of the event, once the message is stored. */
  position: number
}

export type Latency = ReturnType<typeof createLatency>

/** Number of the newest positions whose events and messages the node remembers. */
const remembered = 10_000
/** For so long after a message that had a recipient, the next message is expected to have one too, milliseconds. */
const deliveringMs = 1_000
/** For how many minutes the node remembers the slowest events. */
const slowMinutes = 60
const slowCount = 20
const minuteMs = 60_000

/** Measures how long events take on this node, and how many connected clients get them. The data are in memory. */
export function createLatency(metrics: {
  /** Counts the events above the budget. */
  budgetExceeded: { inc(): void }
  budgetSeconds: Observed
  eventStageSeconds: Record<'decided' | 'stored' | 'written', Observed>
}) {
  const { budgetExceeded, budgetSeconds, eventStageSeconds } = metrics
  const recent = createPercentiles()
  /** Ring buffers, indexed by position. Their objects are reused to spare the garbage collector. */
  const events = new Array<EventStages | undefined>(remembered)
  const recipients = new Array<{ position: number; count: number } | undefined>(remembered)
  let sentAt = -Infinity
  /** The slowest events by minute since the epoch, slowest first. */
  const slow = new Map<number, EventStages[]>()

  return {
    /** Begins the record of an event, to which later stages add their moments. */
    begin: (started: number): Timing => ({ started, decided: started, stored: started, position: 0 }),

    /** Notes that an accepted event is written to all subscribers. Returns whether it took longer than the budget. */
    finish(timing: Timing, id: string, event: string, at: number): boolean {
      const decided = timing.decided - timing.started
      const stored = timing.stored - timing.started
      const written = performance.now() - timing.started
      eventStageSeconds.decided.observe(decided / 1000)
      eventStageSeconds.stored.observe((stored - decided) / 1000)
      eventStageSeconds.written.observe((written - stored) / 1000)
      const { position } = timing
      const took = itemAt(events, position, emptyStages)
      took.id = id
      took.event = event
      took.position = position
      took.at = at
      took.decided = decided
      took.stored = stored
      took.written = written
      noteSlow(took)
      return record(written)
    },

    record,
    /** The percentiles of the newest events. */
    summary: recent.summary,
    /** How long the newest events took, milliseconds. */
    samples: recent.samples,

    /** Whether a message had a recipient here just now: then the messages of other nodes must not wait. */
    isDelivering: (): boolean => performance.now() - sentAt < deliveringMs,

    /** Notes that a message of the journal is written to `count` connected clients. */
    sent(position: number, count: number): void {
      if (count > 0) sentAt = performance.now()
      const sent = itemAt(recipients, position, emptyCount)
      sent.count = sent.position === position ? sent.count + count : count
      sent.position = position
    },

    /**
     * The stages of the event whose first message has this position. Undefined: this node did not accept the event, or
     * accepted it too long ago.
     */
    of(position: number): EventStages | undefined {
      const found = events[position % remembered]
      return found?.position === position ? { ...found } : undefined
    },

    /** How many connected clients of this node got a message. Undefined: the message is too old. */
    recipientsOf(position: number): number | undefined {
      const found = recipients[position % remembered]
      return found?.position === position ? found.count : undefined
    },

    /** The slowest events of the last hour, the slowest first. */
    slowest(now: number): EventStages[] {
      const oldest = Math.floor(now / minuteMs) - slowMinutes
      const found = [...slow].flatMap(([minute, each]) => (minute > oldest ? each : []))
      return slowestOf(found)
    },
  }

  /** Records the milliseconds of one event. Returns whether they are above the budget. */
  function record(ms: number): boolean {
    recent.add(ms)
    budgetSeconds.observe(ms / 1000)
    if (ms <= budgetMs) return false
    budgetExceeded.inc()
    return true
  }

  function noteSlow(took: EventStages): void {
    const minute = Math.floor(took.at / minuteMs)
    const before = slow.get(minute) ?? []
    const last = before.at(-1)
    if (last && before.length === slowCount && last.written >= took.written) return
    slow.set(minute, slowestOf([...before, { ...took }]))
    if (slow.size <= slowMinutes) return
    for (const other of slow.keys()) if (Math.abs(minute - other) >= slowMinutes) slow.delete(other)
    // Bounds the memory if the clock jumps back and forth.
    for (const [first] of slow) if (slow.size > 2 * slowMinutes) slow.delete(first)
  }
}

/** The slowest of these events, the slowest first. */
export function slowestOf<Event extends { written: number }>(events: readonly Event[]): Event[] {
  return events.toSorted((a, b) => b.written - a.written).slice(0, slowCount)
}

/** The ring's object for a position. The object may still hold the data of an older position. */
function itemAt<Item>(items: (Item | undefined)[], position: number, empty: () => Item): Item {
  const index = position % remembered
  const known = items[index]
  if (known) return known
  const item = empty()
  items[index] = item
  return item
}

function emptyStages(): EventStages {
  return { id: '', event: '', position: 0, at: 0, decided: 0, stored: 0, written: 0 }
}

function emptyCount(): { position: number; count: number } {
  return { position: 0, count: 0 }
}

/** Percentiles of the newest samples, at most `windowSize`. */
export function createPercentiles() {
  const ring = new Float64Array(windowSize)
  let count = 0

  return {
    /** Adds the milliseconds of one sample. */
    add(ms: number): void {
      ring[count % windowSize] = ms
      count++
    },
    /** The newest samples, the last one at the end, milliseconds, rounded to microseconds. */
    samples(): number[] {
      const oldest = count > windowSize ? count % windowSize : 0
      const inOrder = [...ring.subarray(oldest, Math.min(count, windowSize)), ...ring.subarray(0, oldest)]
      return inOrder.map((ms) => Math.round(ms * 1000) / 1000)
    },
    /** `count`: all samples since the start. `p50`, `p99`: percentiles of the `newest` samples, milliseconds. */
    summary(newest = windowSize): { count: number; p50: number; p99: number } {
      const length = Math.min(count, windowSize, newest)
      const first = (count - length) % windowSize
      const upToEnd = ring.subarray(first, first + length)
      const sorted = new Float64Array(length)
      sorted.set(upToEnd)
      sorted.set(ring.subarray(0, length - upToEnd.length), upToEnd.length)
      sorted.sort()
      return { count, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) }
    },
  }
}

/** The nearest-rank percentile of milliseconds in ascending order, rounded to microseconds. 0 if `sorted` is empty. */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  const value = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0
  return Math.round(value * 1000) / 1000
}
