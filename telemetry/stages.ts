/** How long an event took in this node. `decided`, `stored`, `written`: milliseconds since the node received it. */
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

/** The moments at which an event reached each stage in this node, by `performance.now()`. */
export interface Way {
  readonly started: number
  decided: number
  stored: number
  /** Position of the first message of the event, once the message is stored. */
  position: number
}

export type Stages = ReturnType<typeof createStages>

/** How many events and how many messages the node remembers: those at the newest positions of the journal. */
const remembered = 10_000
/** For how many minutes the node remembers the slowest events. */
const slowMinutes = 60
const slowCount = 20
const minuteMs = 60_000

/**
 * Remembers how long recent events took on this node, and how many clients connected to this node got them. The data
 * are in memory, bounded, and lost when the node stops. `observe` gets the seconds that each stage took.
 */
export function createStages(observe: (decided: number, stored: number, written: number) => void) {
  /** A ring buffer, indexed by position. It reuses its objects, because new ones would burden the garbage collector. */
  const events = new Array<EventStages | undefined>(remembered)
  const recipients = new Array<{ position: number; count: number } | undefined>(remembered)
  /** The slowest events of each minute, slowest first. The key is the number of the minute since the epoch. */
  const slow = new Map<number, EventStages[]>()

  return {
    /** Begins the record of an event that was received at `started`. Later stages add their moments to it. */
    begin: (started: number): Way => ({ started, decided: started, stored: started, position: 0 }),

    /** Notes that an accepted event is written to all subscribers. Returns the milliseconds that the event took. */
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
    // If the clock jumps back and forth, minutes may remain after the loop above. They must not fill the memory.
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
