import t from 'tap'
import type { Element } from '../../../delivery/worth/element.ts'
import { isStale, type KnownEvent, type Worth, waitOf } from '../../../delivery/worth/worth.ts'

/** Times are seconds from here on. */
const origin = Date.parse('2026-03-01T12:00:00Z')
const at = (seconds: number) => origin + seconds * 1000
const [playing, next, control, data] = ['track.playing', 'track.next', 'control', 'data'].map(
  (kind) => `de.org.hub.v1.radio.${kind}`,
) as [string, string, string, string]
const topics = {
  'L playing': 'radio/L/track/playing',
  'L next': 'radio/L/track/next',
  'M playing': 'radio/M/track/playing',
}

/** An event that the node knows: `start` and `accepted` are in seconds. */
interface Known {
  id?: string
  position: number
  start: number
  accepted?: number
  item?: string
}

interface Case {
  /** How long a message is worth a delivery. By default as long as its element lasts. */
  worth?: Worth
  /** The item that is judged. By default it is a playing at position 5 that starts, and was accepted, at 0. */
  item?: Omit<Partial<Element>, 'time' | 'until' | 'livestreams'> & {
    start?: number
    accepted?: number
    until?: number
    of?: Element['livestreams'] | null
    asked?: true
    id?: string
  }
  /** The events that the node knows, by topic; with a star, the retained one. */
  known?: Partial<Record<keyof typeof topics, readonly Known[]>>
  retained?: Partial<Record<keyof typeof topics, Known>>
  /** Seconds, by the clock of the node. */
  now: number
  /** The same by the clock that does not jump ahead, where it has not followed a jump. */
  steady?: number
  /** Seconds for which this node has known everything, if that is longer than by the clock. */
  seenFor?: number
  is: 'stale' | 'worth it'
}

const element: Worth = { maxAge: 'element' }

const cases: Record<string, Case> = {
  'without maxAge': { worth: {}, now: 1e6, is: 'worth it' },
  'as old as maxAge': { worth: { maxAge: 60 }, now: 60, is: 'worth it' },
  'older than maxAge': { worth: { maxAge: 60 }, now: 60.001, is: 'stale' },
  'seconds count from acceptance, not from the start': {
    worth: { maxAge: 60 },
    item: { start: -3600 },
    now: 60,
    is: 'worth it',
  },
  'the delay is no part of the age': { worth: { maxAge: 60, delayMs: 30_000 }, now: 90, is: 'worth it' },
  'older than maxAge and delay': { worth: { maxAge: 60, delayMs: 30_000 }, now: 91, is: 'stale' },
  'the clock was set back, and the node has known it for long': {
    worth: { maxAge: 60 },
    now: -3600,
    seenFor: 61,
    is: 'stale',
  },
  'the clock has jumped ahead': { worth: { maxAge: 60 }, now: 3600, steady: 30, is: 'worth it' },
  'an old item that somebody asked for': {
    worth: { maxAge: 60 },
    item: { asked: true },
    now: 1e6,
    is: 'worth it',
  },
  'nothing else is known': { now: 1e6, is: 'worth it' },
  'an item without its element': { item: { of: null }, now: 1e6, is: 'worth it' },
  'a later start has begun': { known: { 'L playing': [{ position: 6, start: 240 }] }, now: 240, is: 'stale' },
  'a later start has not begun': {
    known: { 'L playing': [{ position: 6, start: 240, accepted: 200 }] },
    now: 239,
    is: 'worth it',
  },
  'a later start has begun by the time that has passed, though the clock was set back': {
    known: { 'L playing': [{ position: 6, start: 240, accepted: 200 }] },
    now: -3600,
    seenFor: 40,
    is: 'stale',
  },
  'the same start, accepted later': {
    known: { 'L playing': [{ position: 6, start: 0 }] },
    now: 1,
    is: 'stale',
  },
  'the same start, accepted earlier': {
    known: { 'L playing': [{ position: 4, start: 0 }] },
    now: 1,
    is: 'worth it',
  },
  itself: { known: { 'L playing': [{ position: 5, start: 0 }] }, now: 1, is: 'worth it' },
  'its own repetition': {
    known: { 'L playing': [{ id: 'judged', position: 9, start: 0 }] },
    now: 1,
    is: 'worth it',
  },
  'an older event that comes late': {
    item: { start: -240 },
    known: { 'L playing': [{ position: 4, start: 0 }] },
    now: 1,
    is: 'stale',
  },
  'what is retained, though another is later': {
    known: { 'L playing': [{ position: 6, start: 240 }] },
    retained: { 'L playing': { position: 5, start: 0 } },
    now: 1e6,
    is: 'worth it',
  },
  'what is retained by its repetition': {
    known: { 'L playing': [{ position: 6, start: 240 }] },
    retained: { 'L playing': { id: 'judged', position: 9, start: 0 } },
    now: 1e6,
    is: 'worth it',
  },
  'a live show, long after its length': {
    known: { 'L playing': [{ position: 5, start: 0 }] },
    now: 1e5,
    is: 'worth it',
  },
  'another livestream goes on': {
    known: { 'M playing': [{ position: 6, start: 240 }] },
    now: 300,
    is: 'worth it',
  },
  'over on one of its livestreams': {
    item: { of: { L: 0, M: 1 } },
    known: { 'L playing': [{ position: 8, start: 240 }] },
    now: 300,
    is: 'worth it',
  },
  'over on all of its livestreams': {
    item: { of: { L: 0, M: 1 } },
    known: { 'L playing': [{ position: 8, start: 240 }], 'M playing': [{ position: 9, start: 200 }] },
    now: 300,
    is: 'stale',
  },
  'its message for the second livestream is a place further': {
    item: { of: { M: 1 } },
    known: { 'M playing': [{ position: 6, start: 0 }] },
    now: 1,
    is: 'worth it',
  },
  'the later one was accepted less than the delay ago': {
    worth: { ...element, delayMs: 60_000 },
    known: { 'L playing': [{ position: 6, start: 240 }] },
    now: 299,
    is: 'worth it',
  },
  'the later one was accepted the delay ago': {
    worth: { ...element, delayMs: 60_000 },
    known: { 'L playing': [{ position: 6, start: 240 }] },
    now: 300,
    is: 'stale',
  },
  'a next that is still to come': {
    item: { event: next, start: 240, item: 'n' },
    known: { 'L playing': [{ position: 4, start: 0, item: 'p' }] },
    now: 10,
    is: 'worth it',
  },
  'a next that plays': {
    item: { event: next, start: 240, item: 'n' },
    known: {
      'L playing': [
        { position: 4, start: 0 },
        { position: 6, start: 200, item: 'n' },
      ],
    },
    now: 200,
    is: 'stale',
  },
  'a next whose item played before another': {
    item: { event: next, start: 240, item: 'jingle' },
    known: {
      'L playing': [
        { position: 3, start: -200, item: 'jingle' },
        { position: 4, start: 0, item: 'p' },
      ],
    },
    now: 10,
    is: 'worth it',
  },
  'a next that was passed over': {
    item: { event: next, start: 240, item: 'n' },
    known: { 'L playing': [{ position: 6, start: 240, item: 'other' }] },
    now: 240,
    is: 'stale',
  },
  'a next that another next has replaced': {
    item: { event: next, start: 240, item: 'n' },
    known: { 'L next': [{ position: 6, start: 260, accepted: 20 }] },
    now: 260,
    is: 'stale',
  },
  'a control state before its end': { item: { event: control, until: 60 }, now: 59, is: 'worth it' },
  'a control state at its end, by a clock that was corrected': {
    item: { event: control, until: 60 },
    now: 60,
    steady: -3600,
    is: 'stale',
  },
  'a later start has begun, by a clock that was corrected': {
    item: { start: -3600 },
    known: { 'L playing': [{ position: 6, start: 60, accepted: -3600 }] },
    now: 60,
    steady: -3600,
    is: 'stale',
  },
  'a control state at its end': { item: { event: control, until: 60 }, now: 60, is: 'stale' },
  'a control state for those who hear it later': {
    worth: { ...element, delayMs: 30_000 },
    item: { event: control, until: 60 },
    now: 89,
    is: 'worth it',
  },
  'data within its cycle': { item: { event: data, forMs: 30_000 }, now: 29, is: 'worth it' },
  'data after its cycle': { item: { event: data, forMs: 30_000 }, now: 30, is: 'stale' },
}

for (const [
  name,
  { worth = element, item = {}, known = {}, retained = {}, now, steady = now, seenFor = 0, is },
] of Object.entries(cases)) {
  t.test(`${name}: ${is}`, async (t) => {
    const {
      event = playing,
      start = 0,
      accepted = 0,
      until,
      of = { L: 0 },
      asked,
      item: itemId,
      forMs,
    } = item
    const seen = -seenFor * 1000
    const knownAs = ({
      id = 'other',
      position,
      start: from,
      accepted: since = from,
      item: ofItem,
    }: Known): KnownEvent => ({ id, position, time: at(from), at: at(since), item: ofItem, seen })
    const nameOf = (topic: string) =>
      (Object.keys(topics) as (keyof typeof topics)[]).find((key) => topics[key] === topic)
    const judged = {
      messageId: 'judged',
      position: 5,
      enqueuedAt: at(accepted),
      seen,
      ...(asked && { acceptedAt: at(accepted) }),
      ...(of && {
        element: {
          event,
          time: at(start),
          livestreams: of,
          ...(itemId !== undefined && { item: itemId }),
          ...(until !== undefined && { until: at(until) }),
          ...(forMs !== undefined && { forMs }),
        },
      }),
    }
    const stale = isStale(
      judged,
      worth,
      { now: at(now), steady: at(steady), elapsed: 0 },
      {
        newest: (topic) =>
          (known[nameOf(topic) ?? 'L playing'] ?? []).filter(() => nameOf(topic)).map(knownAs),
        retained: (topic) => {
          const value = nameOf(topic) && retained[nameOf(topic) ?? 'L playing']
          return value && knownAs(value)
        },
      },
    )
    t.equal(stale ? 'stale' : 'worth it', is)
  })
}

t.test(
  'an item waits for its time, and never for longer than the delay after this node saw it',
  async (t) => {
    const delayed: Worth = { delayMs: 60_000 }
    for (const [name, worth, item, now, elapsed, wait] of [
      ['without a delay', {}, {}, 0, 0, 0],
      ['at once', delayed, {}, 0, 0, 60_000],
      ['later', delayed, {}, 59, 59, 1_000],
      ['in time', delayed, {}, 60, 60, 0],
      ['seen late, as after a start', delayed, { seen: 50_000 }, 50, 50, 10_000],
      ['the clock was set back', delayed, {}, -3_600, 20, 40_000],
      ['accepted by a clock that is ahead', delayed, { enqueuedAt: at(7_200) }, 20, 20, 40_000],
      ['asked for', delayed, { acceptedAt: at(0) }, 0, 0, 0],
    ] as const) {
      const judged = { enqueuedAt: at(0), seen: 0, ...item }
      t.equal(waitOf(judged, worth, { now: at(now), steady: at(now), elapsed: elapsed * 1000 }), wait, name)
    }
  },
)
