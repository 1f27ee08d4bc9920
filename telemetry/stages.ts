/** How long an event was on its way through this node, stage by stage: milliseconds since it was received. */
export interface EventStages {
  id: string
  event: string
  /** Position of the first message of the event. An event that was sent twice has a record at each of its positions. */
  position: number
  /** When the event was received, milliseconds since the epoch. */
  at: number
  decided: number
  stored: number
  /** Until the event was written to the last connected subscriber of this node. */
  written: number
}

/** The moments of an event that is under way, by `performance.now()`. */
export interface Way {
  readonly started: number
  decided: number
  stored: number
  /** Position of the first message of the event, once the message is stored. */
  position: number
}

export type Stages = ReturnType<typeof createStages>

/** Events and messages that are remembered: those at the newest positions of the journal. */
const remembered = 10_000
/** Minutes of which the slowest events are remembered. */
const slowMinutes = 60
const slowCount = 20
const minuteMs = 60_000

/**
 * Remembers how long recent events took on this node, and how many of its connected clients got them. In memory,
 * bounded, and lost when the node stops. `observe` gets the time of each stage since the stage before, in seconds.
 */
export function createStages(observe: (decided: number, stored: number, written: number) => void) {
  /**
   * A ring of reused objects, by position. New objects for each event would burden the garbage collector.
   */
  const events = new Array<EventStages | undefined>(remembered)
  const recipients = new Array<{ position: number; count: number } | undefined>(remembered)
  /** The slowest events of each minute, by the number of the minute; the slowest first. */
  const slow = new Map<number, EventStages[]>()

  return {
    /** Notes that an event was received at this moment. The later stages note their moments in the returned object. */
    begin: (started: number): Way => ({ started, decided: started, stored: started, position: 0 }),

    /** Notes that an accepted event is written to all subscribers. Returns how long it took, milliseconds. */
    finish(way: Way, id: string, event: string, at: number): number {
      const decided = way.decided - way.started
      const stored = way.stored - way.started
      const written = performance.now() - way.started
      observe(decided / 1000, (stored - decided) / 1000, (written - stored) / 1000)
      const { position } = way
      const took = itemAt(events, position, emptyStages)
      took.id = id
      took.event = event
      took.position = position
      took.at = at
      took.decided = decided
      took.stored = stored
      took.written = written
      noteSlow(took)
      return written
    },

    /** Notes that a message of the journal is written to `count` connected clients. */
    sent(position: number, count: number): void {
      const sent = itemAt(recipients, position, emptyCount)
      sent.count = sent.position === position ? sent.count + count : count
      sent.position = position
    },

    /**
     * The stages of the event whose first message has this position. Undefined: this node did not accept the event, or
     * that is too long ago.
     */
    of(position: number): EventStages | undefined {
      const found = events[position % remembered]
      return found?.position === position ? { ...found } : undefined
    },

    /** How many connected clients of this node got a message; undefined: it is too long ago. */
    recipientsOf(position: number): number | undefined {
      const found = recipients[position % remembered]
      return found?.position === position ? found.count : undefined
    },

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
    slow.set(minute, slowestOf([...before, { ...took }]))
    if (slow.size <= slowMinutes) return
    for (const other of slow.keys()) if (Math.abs(minute - other) >= slowMinutes) slow.delete(other)
    // A clock that jumps to and fro must not fill the memory.
    for (const [first] of slow) if (slow.size > 2 * slowMinutes) slow.delete(first)
  }
}

/** The slowest of these events, the slowest first. */
export function slowestOf<Event extends { written: number }>(events: readonly Event[]): Event[] {
  return events.toSorted((a, b) => b.written - a.written).slice(0, slowCount)
}

/** The object of a position in the ring. It may still hold the data of an older position. */
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
