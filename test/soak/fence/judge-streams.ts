/*
 * Judges streams by what readers saw, and by the journal as a node lists it afterwards.
 */

/** A message of the journal, on the topic of a livestream. */
export interface Journaled {
  position: number
  topic: string
  /** Livestream and marker of the event. */
  marker: string
  /** The name of a control state, else empty. */
  slot: string
  /** Event time, milliseconds since the epoch. */
  time: number
}

/** What one connection of a reader saw. */
export interface StreamConnection {
  node: number
  openedAt: number
  /** The id with which the reader came back. */
  after: number | undefined
  status?: number | undefined
  /** Markers of the events without an id, in order. */
  state: string[]
  events: { id: number; marker: string }[]
  /** Position of `ready`. */
  readyAt?: number
  hasMissed?: boolean
  /** The reason in `bye`. */
  reason?: string
  isClosed?: boolean
}

export interface StreamRecord {
  name: string
  wants: (topic: string) => boolean
  connections: StreamConnection[]
}

/**
 * What contradicts the promises of a stream (open.md §4, "A return" in journal.md). `journal`: in the order of positions.
 * `mayMiss`: the store may have lost data.
 */
export function wrongInStream(
  record: StreamRecord,
  journal: readonly Journaled[],
  mayMiss = false,
): string[] {
  const own = journal.filter(({ topic }) => record.wants(topic))
  const byPosition = new Map(own.map((message) => [message.position, message]))
  const problems: string[] = []
  let last = 0
  for (const [nth, connection] of record.connections.entries()) {
    const { node, events, after, readyAt, hasMissed } = connection
    const where = `${record.name}, connection ${nth} on node ${node} from ${after}`
    const say = (what: string) => problems.push(`${where}: ${what}`)
    if (hasMissed && !mayMiss) say('it is said to have missed something')
    if (hasMissed) last = 0
    for (const { id, marker } of events) {
      if (id <= last) say(`${id} comes behind ${last}`)
      last = Math.max(last, id)
      const found = byPosition.get(id)
      if (found?.marker !== marker) say(`${id} is ${marker}, the journal has ${found?.marker}`)
    }
    if (readyAt === undefined) continue
    const beforeReady = events.filter(({ id }) => id <= readyAt).length
    if (events.slice(0, beforeReady).some(({ id }) => id > readyAt)) say('an event came before its turn')
    const from = hasMissed ? undefined : after
    for (const { position, marker, topic } of owed(connection, own, from))
      say(`lacks ${marker} of ${topic} at ${position}, ready at ${readyAt}`)
    for (const problem of twice(connection, own)) say(problem)
    last = Math.max(last, readyAt)
  }
  return problems
}

/** Readers that do not have the newest message of the journal yet. */
export function isBehind({ wants, connections }: StreamRecord, journal: readonly Journaled[]): boolean {
  const newest = journal.findLast(({ topic }) => wants(topic))?.position ?? 0
  const last = connections.at(-1)
  return Math.max(last?.readyAt ?? 0, last?.events.at(-1)?.id ?? 0) < newest
}

/** What a connection should have got, and did not. `from`: the position after which it went on. */
function owed(
  connection: StreamConnection,
  own: readonly Journaled[],
  from: number | undefined,
): Journaled[] {
  const { events, state, readyAt = 0 } = connection
  const ids = new Set(events.map(({ id }) => id))
  const shown = new Set(state)
  const lastId = events.at(-1)?.id ?? 0
  const live = own.filter(({ position }) => position > readyAt && position <= lastId)
  const before = own.filter(({ position }) => position <= readyAt)
  const newest = [...newestOfEach(before).values()]
  const isControl = ({ slot }: Journaled) => slot !== ''
  const atReady =
    from === undefined
      ? newest.filter(({ marker }) => !shown.has(marker))
      : [...newest.filter((message) => !isControl(message)), ...before.filter(isControl)].filter(
          ({ position }) => position > from,
        )
  return [...atReady, ...live].filter(({ position }) => !ids.has(position))
}

/** Of each topic, and of each name of a control state, the message that is retained. */
function newestOfEach(messages: readonly Journaled[]): Map<string, Journaled> {
  const newest = new Map<string, Journaled>()
  for (const message of messages) {
    const key = `${message.topic} ${message.slot}`
    if ((newest.get(key)?.time ?? 0) <= message.time) newest.set(key, message)
  }
  return newest
}

/** Events of the state that came once more, although they were stored once. */
function twice({ state, events }: StreamConnection, own: readonly Journaled[]): string[] {
  const shown = new Set(state)
  const again = state.length > shown.size ? ['an event is twice in the state'] : []
  const count = new Map<string, number>()
  for (const { marker } of own) count.set(marker, (count.get(marker) ?? 0) + 1)
  return [
    ...again,
    ...events.flatMap(({ marker }) =>
      shown.has(marker) && count.get(marker) === 1 ? [`${marker} comes again behind the state`] : [],
    ),
  ]
}
