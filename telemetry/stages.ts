/** How long an event was on its way through this node, stage by stage: milliseconds since it was received. */
export interface EventStages {
  id: string
  event: string
  /** Of its first message: an event that was sent twice has two. */
  position: number
  /** When it was received, milliseconds since the epoch. */
  at: number
  decided: number
  stored: number
  /** Until the last connected subscriber of this node had been written to. */
  written: number
}

/** The moments of an event that is under way, by `performance.now()`. */
export interface Way {
  readonly started: number
  decided: number
  stored: number
  /** Where its first message lies in the journal, once it is stored. */
  position: number
}

export const stages = ['decided', 'stored', 'written'] as const
type Stage = (typeof stages)[number]

export type Stages = ReturnType<typeof createStages>

/** Events and messages that are remembered at least; twice as many at most. */
const remembered = 5_000
/** The slowest events of the last so many minutes. */
const slowMinutes = 60
const slowCount = 20
const minuteMs = 60_000

/**
 * What recent events took on this node, and how many connected clients of this node got them. In memory, bounded, and
 * gone with the node. `observe` gets what each stage took since the one before, in seconds.
 */
export function createStages(observe: (stage: Stage, seconds: number) => void) {
  const events = createRecent<number, EventStages>(remembered)
  const recipients = createRecent<number, number>(remembered)
  /** The slowest of each minute, by its number; the slowest first. */
  const slow = new Map<number, EventStages[]>()

  return {
    /** An event was received at this moment. Whoever takes it further notes in the answer when. */
    begin: (started: number): Way => ({ started, decided: started, stored: started, position: 0 }),

    /** An accepted event has been written to everybody. Returns what it took, milliseconds. */
    finish(
      { started, decided, stored, position }: Way,
      of: Pick<EventStages, 'id' | 'event' | 'at'>,
    ): number {
      const written = performance.now() - started
      const took = { ...of, position, decided: decided - started, stored: stored - started, written }
      observe('decided', took.decided / 1000)
      observe('stored', (took.stored - took.decided) / 1000)
      observe('written', (took.written - took.stored) / 1000)
      events.set(position, took)
      noteSlow(took)
      return written
    },

    /** A message of the journal has been written to so many connected clients. */
    sent(position: number, count: number): void {
      recipients.set(position, (recipients.get(position) ?? 0) + count)
    },

    /** By the position of its first message. Undefined: not accepted by this node, or too long ago. */
    of: (position: number): EventStages | undefined => events.get(position),

    /** How many connected clients of this node got a message; undefined: it is too long ago. */
    recipientsOf: (position: number): number | undefined => recipients.get(position),

    /** The slowest events of the last hour, the slowest first. */
    slowest(now: number): EventStages[] {
      const oldest = Math.floor(now / minuteMs) - slowMinutes
      const recent = [...slow].flatMap(([minute, found]) => (minute > oldest ? found : []))
      return slowestOf(recent)
    },
  }

  function noteSlow(took: EventStages): void {
    const minute = Math.floor(took.at / minuteMs)
    const before = slow.get(minute) ?? []
    const last = before.at(-1)
    if (last && before.length === slowCount && last.written >= took.written) return
    slow.set(minute, slowestOf([...before, took]))
    if (slow.size <= slowMinutes) return
    for (const other of slow.keys()) if (Math.abs(minute - other) >= slowMinutes) slow.delete(other)
    // A clock that jumps to and fro must not fill the memory.
    for (const [first] of slow) if (slow.size > 2 * slowMinutes) slow.delete(first)
  }
}

/** Of these the slowest, the slowest first. */
export function slowestOf<Event extends { written: number }>(events: readonly Event[]): Event[] {
  return events.toSorted((a, b) => b.written - a.written).slice(0, slowCount)
}

/** A map that forgets the oldest: they go together, when as many newer ones are there. */
function createRecent<Key, Value>(count: number) {
  let current = new Map<Key, Value>()
  let former = new Map<Key, Value>()
  return {
    get: (key: Key): Value | undefined => current.get(key) ?? former.get(key),
    set(key: Key, value: Value): void {
      current.set(key, value)
      if (current.size < count) return
      former = current
      current = new Map()
    },
  }
}
