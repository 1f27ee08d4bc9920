/*
 * Judges the hub by what clients saw. Times are `performance.now()` of the test, in milliseconds.
 */

/** An event that was published. */
export interface Sent {
  marker: string
  kind: 'control' | 'track' | 'data'
  livestream: string
  /** The topic on which subscribers get the event. */
  topic: string
  sentAt: number
  /** How often the publisher sent the event until a node acknowledged it. */
  attempts: number
  acknowledgedAt?: number
  /** The publisher's steps with this event, for the report of a finding. */
  trail?: Step[]
}

/** A step of a client, for the report of a finding. */
export interface Step {
  at: number
  what: string
}

/**
 * The state of a filter from `at` on:
 *
 * - `unknown`: the client has asked for a change, and has no answer yet.
 * - `removed`: the filter was removed or refused, or the session has ended.
 */
export interface FilterState {
  at: number
  filter: string
  state: 'granted' | 'removed' | 'unknown'
}

/** The answers and messages that a session got. */
export interface SessionRecord {
  clientId: string
  /** Ordered by time. */
  filters: FilterState[]
  /** When the client asked to end the session. Events published before are no longer owed. */
  endedAt: number[]
  received: { marker: string; at: number; isRetained: boolean; isDuplicate: boolean; connection: number }[]
}

/** Within this time, ms, an acknowledged event is sent to connected sessions, even under faults. */
const begunMs = 30_000

/** Acknowledged events that a session should have got, and did not. */
export function missing(session: SessionRecord, sent: readonly Sent[]): string[] {
  const got = new Set(session.received.map(({ marker }) => marker))
  return due(sent)
    .filter((event) => !got.has(event.marker) && isOwed(session, event))
    .map(({ marker, topic }) => `${session.clientId} misses ${marker} of ${topic}`)
}

/** Due are all control events, and the newest track and data event of each topic. */
function due(sent: readonly Sent[]): Sent[] {
  const newest = new Map<string, Sent>()
  for (const event of sent) newest.set(event.topic, event)
  return sent.filter((event) => event.kind === 'control' || newest.get(event.topic) === event)
}

/**
 * Whether the session must get the event. It must if the session has not ended since the event was sent, and if one
 * matching filter was granted from then until `begunMs` after the acknowledgement. An UNSUBSCRIBE ends a delivery that
 * has not begun (docs/decisions, "UNSUBSCRIBE takes effect when it is stored").
 */
function isOwed(session: SessionRecord, event: Sent): boolean {
  const { sentAt, acknowledgedAt } = event
  if (acknowledgedAt === undefined || session.endedAt.some((at) => at >= sentAt)) return false
  return filtersFor(session, event.topic).some((filter) => {
    const states = session.filters.filter((state) => state.filter === filter)
    const before = states.findLast(({ at }) => at <= sentAt)
    const isChanged = states.some(({ at }) => at > sentAt && at <= acknowledgedAt)
    const isEnded = states.some(
      ({ at, state }) => at > acknowledgedAt && at < acknowledgedAt + begunMs && state !== 'granted',
    )
    return before?.state === 'granted' && !isChanged && !isEnded
  })
}

/** Events that a session got, although no matching filter was granted or requested between publish and delivery. */
export function unwanted(session: SessionRecord, sent: readonly Sent[]): string[] {
  const events = new Map(sent.map((event) => [event.marker, event]))
  return session.received.flatMap(({ marker, at, isRetained }) => {
    const event = events.get(marker)
    if (!event || isRetained) return []
    const isAsked = filtersFor(session, event.topic).some((filter) => {
      const states = session.filters.filter((state) => state.filter === filter && state.at <= at)
      const before = states.findLast((state) => state.at <= event.sentAt)
      const since = states.filter((state) => state.at > event.sentAt)
      return [...(before ? [before] : []), ...since].some(({ state }) => state !== 'removed')
    })
    return isAsked ? [] : [`${session.clientId} gets ${marker} of ${event.topic} without a filter`]
  })
}

/**
 * Events that were published once, but came twice in one connection, the second time without DUP. The client cannot
 * recognise the repetition [MQTT-4.4.0-1].
 */
export function sentAgain(session: SessionRecord, sent: readonly Sent[]): string[] {
  const publishedOnce = new Set(sent.filter(({ attempts }) => attempts === 1).map(({ marker }) => marker))
  const seen = new Set<string>()
  return session.received.flatMap(({ marker, isRetained, isDuplicate, connection }) => {
    if (isRetained || !publishedOnce.has(marker)) return []
    const isKnown = seen.has(`${connection} ${marker}`)
    seen.add(`${connection} ${marker}`)
    return isKnown && !isDuplicate ? [`${session.clientId} gets ${marker} again in one connection`] : []
  })
}

/** The steps of an event, and of a session within 30 s of the event. */
export function trailOf(session: SessionRecord, steps: readonly Step[], event: Sent): Step[] {
  const { sentAt, acknowledgedAt = sentAt, marker } = event
  const own = filtersFor(session, event.topic)
  const states = session.filters.filter(({ filter }) => own.includes(filter))
  const got = session.received.filter((message) => message.marker === marker)
  const all = [
    ...(event.trail ?? []),
    ...steps.filter(({ at }) => at > sentAt - 30_000 && at < acknowledgedAt + 30_000),
    ...states.map(({ at, filter, state }) => ({ at, what: `${filter} ${state}` })),
    ...got.map(({ at, connection }) => ({ at, what: `received in connection ${connection}` })),
  ]
  return all.sort((one, other) => one.at - other.at)
}

function filtersFor(session: SessionRecord, topic: string): string[] {
  const filters = new Set(session.filters.map(({ filter }) => filter))
  return [...filters].filter((filter) => matches(filter, topic))
}

/** Whether a topic filter matches a topic by the rules of MQTT [MQTT-4.7.1]. */
export function matches(filter: string, topic: string): boolean {
  const levels = topic.split('/')
  const wanted = filter.split('/')
  const isOpenEnded = wanted.at(-1) === '#'
  if (isOpenEnded) wanted.pop()
  if (isOpenEnded ? levels.length < wanted.length : levels.length !== wanted.length) return false
  return wanted.every((level, index) => level === '+' || level === levels[index])
}

/**
 * Events of one livestream that came too early. The first attempt of each came before the first attempt of an event
 * that was published earlier. `attempts` are markers, in the order of the attempts.
 */
export function outOfOrder(sent: readonly Sent[], attempts: readonly string[]): string[] {
  const place = new Map<string, number>()
  for (const [index, marker] of attempts.entries()) if (!place.has(marker)) place.set(marker, index)
  let furthest = -1
  let before = ''
  return sent.flatMap(({ marker }) => {
    const at = place.get(marker)
    if (at === undefined) return []
    const isLate = at < furthest
    const wrong = isLate ? [`${marker} came before ${before}`] : []
    if (!isLate) before = marker
    furthest = Math.max(furthest, at)
    return wrong
  })
}
