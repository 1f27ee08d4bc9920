/*
 * Judges the hub by what clients saw. All moments are on one clock, that of the checker.
 */

/** An event that was published. */
export interface Sent {
  marker: string
  kind: 'control' | 'track' | 'data'
  livestream: string
  /** Where subscribers find it. */
  topic: string
  sentAt: number
  /** How often it was sent until it was acknowledged. */
  attempts: number
  acknowledgedAt?: number
  /** Its way to the nodes, to find the cause of a finding. */
  trail?: Step[]
}

/** A step of a client, for the report of a finding. */
export interface Step {
  at: number
  what: string
}

/**
 * The state of a filter from a moment on: granted (SUBACK), removed (UNSUBACK, or the session ended), or unknown, from
 * the request until the answer.
 */
export interface FilterState {
  at: number
  filter: string
  state: 'granted' | 'removed' | 'unknown'
}

/** The answers and messages that a session got. */
export interface SessionRecord {
  clientId: string
  /** In the order of time. */
  filters: FilterState[]
  /** When its client asked to end the session. Events that were published before are not owed any more. */
  endedAt: number[]
  received: { marker: string; at: number; isRetained: boolean; isDuplicate: boolean; connection: number }[]
}

/** So long after an event was acknowledged every connected session was sent it, milliseconds: also through faults. */
const begunMs = 30_000

/** Acknowledged events that a session should have got, and did not. */
export function missing(session: SessionRecord, sent: readonly Sent[]): string[] {
  const got = new Set(session.received.map(({ marker }) => marker))
  return due(sent)
    .filter((event) => !got.has(event.marker) && isOwed(session, event))
    .map(({ marker, topic }) => `${session.clientId} misses ${marker} of ${topic}`)
}

/** The events that a session must get: all control events; of track and data the newest of each topic. */
function due(sent: readonly Sent[]): Sent[] {
  const newest = new Map<string, Sent>()
  for (const event of sent) newest.set(event.topic, event)
  return sent.filter((event) => event.kind === 'control' || newest.get(event.topic) === event)
}

/**
 * Whether one filter was granted all the time while the event was published, and the session has not ended since. An
 * UNSUBSCRIBE ends what was not begun (docs/decisions.md, "UNSUBSCRIBE takes effect when
 * it is stored").
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

/** Events that were published and delivered while all filters that match were removed. */
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
 * Events that were published once, and sent twice in one connection, which had acknowledged them: under a new packet
 * identifier and without DUP, so that the client cannot know [MQTT-4.4.0-1].
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

/** What an event and a session went through around the time of the event, for a person who looks for the cause. */
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

/** As MQTT has it [MQTT-4.7.1]. */
export function matches(filter: string, topic: string): boolean {
  const levels = topic.split('/')
  const wanted = filter.split('/')
  const isOpenEnded = wanted.at(-1) === '#'
  if (isOpenEnded) wanted.pop()
  if (isOpenEnded ? levels.length < wanted.length : levels.length !== wanted.length) return false
  return wanted.every((level, index) => level === '+' || level === levels[index])
}

/**
 * Events of one livestream whose delivery began before that of an event which was acknowledged earlier, or never
 * began. `attempts` are markers in the order of the attempts; repetitions count as nothing new.
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
