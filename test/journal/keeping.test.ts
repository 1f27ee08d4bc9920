import t from 'tap'
import type { IndexEntry } from '../../journal/entry.ts'
import { maxAgeMs, moveWindow, streamBytesOf, unkept } from '../../journal/keeping.ts'
import { defaultLimits } from '../default-limits.ts'

const now = Date.parse('2026-01-31T12:00:00Z')
const base = { at: now, bytes: 100, qos: 1 as const }

type Kind = 'track' | 'control' | 'state' | 'report' | 'refused' | 'plain'

/** An index entry of a kind, at a position. `fields` replace its usual fields. */
function entry(kind: Kind, position: number, fields: Partial<IndexEntry> = {}): IndexEntry {
  const own = { ...base, position, stream: 'one', topic: `radio/one/${kind}` }
  const kinds: Record<Kind, IndexEntry> = {
    track: { ...own, keep: 'latest' },
    control: { ...own, keep: 'every', expires: now + 1000 },
    state: { ...own, keep: 'every' },
    report: { ...own, keep: 'every', isReport: true },
    refused: { ...own, keep: 'every', isReport: true, hasErrors: true },
    plain: { ...own, keep: 'every', topic: 'one' },
  }
  return { ...kinds[kind], ...fields }
}

const limits = { ...defaultLimits, history: 2, historyBytes: 1_000, queueLimit: 3, windowBytes: 1_000 }
const window = 1_000_000
const old = { at: now - maxAgeMs }
const over = { expires: now }
const many = (kind: Kind, count: number, from = 1) =>
  Array.from({ length: count }, (_, nth) => entry(kind, from + nth))

const cases: [
  what: string,
  entries: IndexEntry[],
  gone: number[],
  reach?: { historyFrom?: number; window?: number; streamBytes?: number },
][] = [
  ['the newest events of a livestream', many('track', 4), [1, 2]],
  [
    'tracks and control events count together',
    [entry('track', 1), entry('state', 2), entry('track', 3)],
    [1],
  ],
  ['events in the window count', [...many('track', 2), ...many('track', 1, window)], [1]],
  ['what is in the window stays', many('track', 5, window), []],
  ['in the window its age does not matter', [entry('track', window, old)], []],
  ['older events than the history has room for', many('track', 2), [1], { historyFrom: 2 }],
  ['no more bytes than a livestream may have', many('track', 2), [1], { streamBytes: 199 }],
  [
    'valid control events, however many events came since',
    [entry('control', 1), ...many('track', 3, 2)],
    [2],
  ],
  [
    'a control event that is over is an event like others',
    [entry('control', 1, over), ...many('track', 2, 2)],
    [1],
  ],
  [
    'control events that are over do not count as valid ones',
    [entry('control', 1), ...many('control', 3, 2).map((each) => ({ ...each, ...over }))],
    [2],
  ],
  ['the newest valid control events', many('control', 5), [1, 2]],
  ['a valid control event that is no history', [entry('control', 1)], [], { historyFrom: 2 }],
  ['the newest thousand reports', many('report', 1_002), [1, 2]],
  [
    'of large reports the newest eight megabytes',
    many('report', 40).map((each) => ({ ...each, bytes: 256 * 1024 })),
    [1, 2, 3, 4, 5, 6, 7, 8, 9],
  ],
  [
    'besides them the newest thousand that tell of errors',
    [...many('refused', 1_002), ...many('report', 1_000, 2_000)],
    [1, 2],
  ],
  ['however many reports are in the window', [entry('refused', 1), ...many('report', 1_000, window)], []],
  ['those in the window count', [...many('refused', 2), ...many('refused', 999, window)], [1]],
  ['reports are no history', many('report', 5), [], { historyFrom: 10 }],
  ['the newest thousand of a topic without a livestream', many('plain', 1_001), [1]],
  [
    'seven days at most',
    [entry('track', 1, old), entry('control', 2, old), entry('report', 3, old)],
    [1, 2, 3],
  ],
  ['just before', [entry('track', 1, { at: now - maxAgeMs + 1 })], []],
]

for (const [what, entries, gone, reach] of cases) {
  t.test(`kept: ${what}`, async (t) => {
    const newestFirst = [...entries].reverse()
    const countIn = (isCounted: (each: IndexEntry) => boolean | undefined) =>
      entries.filter((each) => each.position >= window && isCounted(each)).length
    const inWindow = {
      events: countIn(({ isReport }) => !isReport),
      others: countIn(({ isReport }) => isReport),
      withErrors: countIn(({ hasErrors }) => hasErrors),
    }
    const over = unkept(newestFirst, inWindow, limits, {
      window,
      historyFrom: 0,
      streamBytes: Infinity,
      now,
      ...reach,
    })
    t.same(over.map(({ position }) => position).reverse(), gone)
  })
}

t.test('a livestream may have twice what is free, and a small share in any case', async (t) => {
  const cases: [used: number, expected: number][] = [
    [0, 1_920_000],
    [896_000, 128_000],
    [957_000, 6_000],
    [960_000, 4_000],
    [2_000_000, 4_000],
  ]
  for (const [used, expected] of cases) t.equal(streamBytesOf({ historyBytes: 1_024_000 }, used), expected)
})

t.test('without history, control events and reports are kept as before', async (t) => {
  const entries = [entry('report', 4), entry('control', 3), entry('track', 2), entry('state', 1)]
  const over = unkept(
    entries,
    { events: 0, others: 0, withErrors: 0 },
    { ...limits, history: 0 },
    { window, historyFrom: 0, streamBytes: Infinity, now },
  )
  t.same(
    over.map(({ position }) => position),
    [2, 1],
  )
})

t.test('the window holds at least its bytes, and nothing for more than seven days', async (t) => {
  const windowBytes = 6_400
  const part = (upTo: number, bytes: number, at = now) => ({ upTo, bytes, at })
  const ahead = now + maxAgeMs
  const cases: [
    what: string,
    before: ReturnType<typeof part>[],
    appended: [bytes: number, head: number],
    passed: number,
    after: number[],
  ][] = [
    ['nothing yet', [], [0, 0], 0, []],
    ['the first messages', [], [50, 3], 0, [3]],
    ['a part is filled', [part(3, 50)], [60, 5], 0, [5]],
    ['and the next begun', [part(3, 100)], [1, 5], 0, [3, 5]],
    ['nothing was appended', [part(3, 100)], [0, 3], 0, [3]],
    ['a part of long ago is not added to', [part(3, 50, now - 6 * 3600 * 1000)], [1, 5], 0, [3, 5]],
    ['more than the window', [part(3, 100), part(9, 6_399)], [1, 10], 3, [9, 10]],
    ['one message that is larger stays', [part(3, 100)], [9_999, 4], 3, [4]],
    ['not yet more', [part(3, 100), part(9, 6_300)], [1, 10], 0, [3, 9, 10]],
    ['seven days', [part(3, 100, now - maxAgeMs), part(9, 100, now - maxAgeMs + 1)], [1, 10], 3, [9, 10]],
    ['all of it', [part(3, 100, now - maxAgeMs)], [0, 3], 3, []],
    [
      'seven days behind a part that began while the clock was ahead',
      [part(3, 100, ahead), part(6, 100, now - maxAgeMs), part(9, 100, now - maxAgeMs + 1)],
      [1, 10],
      6,
      [9, 10],
    ],
    ['a part that began while the clock was ahead is not added to', [part(3, 50, ahead)], [1, 5], 0, [3, 5]],
    ['the clock is behind', [part(3, 100, ahead), part(9, 100, ahead)], [1, 10], 0, [3, 9, 10]],
    [
      'the clock was behind',
      [part(3, 100), part(9, 100, now - 2 * maxAgeMs), part(12, 100)],
      [0, 12],
      0,
      [3, 9, 12],
    ],
  ]
  for (const [what, before, [bytes, head], passed, after] of cases) {
    const moved = moveWindow(before, { bytes, head }, { windowBytes }, now)
    t.equal(moved.passed, passed, what)
    t.same(
      moved.parts.map(({ upTo }) => upTo),
      after,
      what,
    )
  }
})
