import { maxDelayMs } from '../../event/delivery-fields.ts'
import { eventKinds } from '../../event/kind.ts'
import { radioTopic } from '../../event/topic.ts'
import { readObject } from '../../journal/history/event-row.ts'
import type { Journal } from '../../journal/journal.ts'
import type { RetainedMessages } from '../../journal/retained.ts'
import type { Element } from './element.ts'
import { ageOf, type ClockReading, isLater, type KnownEvent, type KnownEvents } from './worth.ts'

/** Of a topic at most so many events are kept. */
const mostOfTopic = 100
/** The fewest events of a topic for which a look at what is still needed is worth its time. */
const fewestToLook = 4
/** A larger payload is read at once, and not kept: 100 large ones for each livestream would fill the memory. */
const mostKeptBytes = 4_096

/** The kinds whose events are over when others come. */
const kinds = eventKinds.filter(({ class: name }) => name === 'track')
const suffixes = kinds.map(({ suffix }) => `/${suffix}`)

/** Keeps in memory which events of the livestreams are the newest, to judge whether others are over. */
export function createKnownEvents(parts: {
  journal: Pick<Journal, 'onEach'>
  retained: Pick<RetainedMessages, 'topics' | 'stored'>
  moment: () => ClockReading
}) {
  const { journal, retained, moment } = parts
  const byTopic = new Map<string, { events: KnownEvent[]; lookAt: number }>()
  /** The last large payload that was read: an event comes once for each of its livestreams. */
  let large: (Pick<KnownEvent, 'id' | 'item'> & { payload: Buffer }) | undefined
  for (const kind of kinds) {
    for (const topic of retained.topics(radioTopic('+', kind))) {
      const value = retained.stored(topic)
      if (value) note(topic, withoutLarge({ ...value, seen: moment().elapsed }))
    }
  }
  journal.onEach(({ topic, retained: value, payload, position, at, isRepetition }) => {
    if (value === undefined || isRepetition || !isJudged(topic)) return
    note(topic, withoutLarge({ time: value.time, payload, position, at, seen: moment().elapsed }))
  })

  const known: KnownEvents = {
    newest: (topic) => byTopic.get(topic)?.events ?? [],
    retained(topic) {
      const value = retained.stored(topic)
      return value && new UnreadEvent({ ...value, seen: 0 })
    },
  }
  return {
    ...known,

    /** Notes the event of an item that waits: after a start, these are the events that count. */
    noteItem(item: {
      messageId: string
      position: number
      enqueuedAt: number
      seen: number
      element?: Element
    }) {
      const { messageId: id, enqueuedAt: at, seen, element } = item
      const kind = kinds.find(({ name }) => name === element?.event)
      if (!element || !kind || item.position === 0) return
      const { time, item: of, livestreams } = element
      for (const [livestreamId, distance] of Object.entries(livestreams)) {
        const position = item.position + distance
        note(radioTopic(livestreamId, kind), { id, position, time, item: of, at, seen })
      }
    },
  }

  function withoutLarge(event: Unread): KnownEvent {
    const { position, time, at, seen, payload } = event
    if (payload.length <= mostKeptBytes) return new UnreadEvent(event)
    if (large?.payload !== payload) large = { payload, ...aboutOf(payload) }
    return { position, time, at, seen, id: large.id, item: large.item }
  }

  function note(topic: string, event: KnownEvent): void {
    const before = byTopic.get(topic)
    if (!before) return void byTopic.set(topic, { events: [event], lookAt: fewestToLook })
    const { events } = before
    if (events.some(({ position }) => position === event.position)) return
    events.push(event)
    if (events.length < before.lookAt) return
    const kept = thinned(stillNeeded(events, moment()))
    // So each event is looked at a few times, however many come.
    const lookAt = Math.min(Math.max(2 * kept.length, fewestToLook), mostOfTopic + 1)
    byTopic.set(topic, { events: kept, lookAt })
  }
}

/** The events of which one can still be the newest. One that has begun, and for every delay, ends all before it. */
function stillNeeded(events: KnownEvent[], moment: ClockReading): KnownEvent[] {
  let settled: KnownEvent | undefined
  for (const event of events) {
    const isSettled = event.time <= moment.now && ageOf(event, moment) >= maxDelayMs
    if (isSettled && !(settled && isLater(settled, event))) settled = event
  }
  return events.filter((event) => !settled || event === settled || isLater(event, settled))
}

/** Leaves out every other event of many: an event that is missing here lets another be worth it for longer. */
function thinned(events: KnownEvent[]): KnownEvent[] {
  if (events.length <= mostOfTopic) return events
  return events.filter((_, index) => index === events.length - 1 || index % 2 === 0)
}

function isJudged(topic: string): boolean {
  return suffixes.some((suffix) => topic.endsWith(suffix))
}

/** An event of which the payload says the rest. */
type Unread = Omit<KnownEvent, 'id' | 'item'> & { payload: Buffer }

/** An event whose payload is read at the first question for its id. Most are never asked. */
class UnreadEvent implements KnownEvent {
  readonly position: number
  readonly time: number
  readonly at: number
  readonly seen: number
  readonly #payload: Buffer
  #about: ReturnType<typeof aboutOf> | undefined

  constructor({ position, time, at, seen, payload }: Unread) {
    this.position = position
    this.time = time
    this.at = at
    this.seen = seen
    this.#payload = payload
  }

  get id() {
    return this.#read().id
  }

  get item() {
    return this.#read().item
  }

  #read() {
    this.#about ??= aboutOf(this.#payload)
    return this.#about
  }
}

function aboutOf(payload: Buffer): Pick<KnownEvent, 'id' | 'item'> {
  const { id, playlistItemId } = readObject(payload)
  return { id: String(id), item: typeof playlistItemId === 'string' ? playlistItemId : undefined }
}
