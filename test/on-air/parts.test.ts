import t from 'tap'
import { eventKinds } from '../../event/kind.ts'
import { radioTopic } from '../../event/topic.ts'
import type { Entry } from '../../journal/entry.ts'
import { toValue } from '../../journal/retained-values.ts'
import { createParts } from '../../on-air/parts.ts'

const playing = eventKinds.find(({ isNow }) => isNow)
const topic = playing ? radioTopic('x', playing) : ''

/** A title at each of the positions 1 to 400, one each second. */
const entries = Array.from({ length: 400 }, (_, nth) => title(nth + 1, (nth + 1) * 1000))

function title(position: number, time: number): Entry {
  return {
    topic,
    payload: Buffer.from(`${position}`),
    qos: 1,
    retained: { slot: '', time },
    queue: { keep: 'latest' },
    position,
    at: time,
  }
}

t.test('what was shown a moment ago is found with few messages', async (t) => {
  let read = 0
  const history = {
    async messages(_id: string, { before = Infinity, limit }: { before?: number; limit: number }) {
      const messages = entries
        .filter(({ position }) => position < before)
        .slice(-limit)
        .reverse()
      read += messages.length
      return { messages, next: messages.at(-1)?.position ?? null }
    },
  }
  const newest = title(400, 400_000)
  const value = toValue(newest, newest.position, newest.at)
  const retained = { storedValues: (of: string) => (of === topic && value ? [value] : []) }
  const parts = createParts({ retained, history })
  const shown = async (position: number, now: number) => {
    const found = await parts.of('x', { position, now })
    return found.flatMap(({ values }) => values).map(({ payload }) => String(payload))
  }
  t.same(await shown(399, 399_000), ['399'])
  t.ok(read <= 10, `${read} messages`)
  t.same(await shown(200, 150_000), ['150'], 'those before it were announced for later')
})

t.test('a control state of long ago is shown although another one was replaced since', async (t) => {
  const control = eventKinds.find(({ slotField }) => slotField !== undefined)
  const of = control ? radioTopic('x', control) : ''
  const state = (position: number, slot: string): Entry => {
    const entry = title(position, position * 1000)
    return { ...entry, topic: of, retained: { slot, time: entry.at } }
  }
  const all = [state(1, 'long ago'), state(200, 'replaced'), state(400, 'replaced')]
  const [longAgo, before, now] = all.map((entry) => toValue(entry, entry.position, entry.at))
  if (!longAgo || !before || !now) throw new Error('no values')
  const parts = createParts({
    retained: { storedValues: (topic) => (topic === of ? [longAgo, now] : []) },
    history: {
      messages: async (_id, { before = Infinity }) => {
        const [newest] = all.filter(({ position }) => position < before).reverse()
        return { messages: newest ? [newest] : [], next: newest?.position ?? null }
      },
    },
  })
  const found = await parts.of('x', { position: 300, now: 300_000 })
  t.same(
    found.flatMap(({ values }) => values).map(({ payload }) => String(payload)),
    ['1', '200'],
  )
})

t.test('an event that was stored behind later ones is ahead of a moment by its time', async (t) => {
  // At 100 s, a node stores the event of 99 s behind that of 100 s: its disk, or the store, was slow.
  const all = [title(1, 50_000), title(2, 100_000), { ...title(3, 99_000), topic: 'radio/x/other' }]
  const now = title(4, 103_000)
  const parts = createParts({
    retained: {
      storedValues: (of) => (of === topic ? [toValue(now, 4, now.at)].flatMap((one) => one ?? []) : []),
    },
    history: {
      async messages(_id, { before = Infinity }) {
        return { messages: all.filter(({ position }) => position < before).reverse(), next: null }
      },
    },
  })
  const moment = { position: 3, now: 99_500 }
  const positions = (values: readonly { position: number }[]) => values.map(({ position }) => position)
  t.same(positions((await parts.of('x', moment)).flatMap(({ values }) => values)), [1])
  t.same(positions(await parts.ahead('x', moment)), [2], 'a reader behind position 3 gets it in no other way')
})

t.test('an older event that was accepted late does not hide the newer one before it', async (t) => {
  // The newer one, eight that have no say, the late one, and what has replaced them since.
  const newer = title(1, 100_000)
  const others = [2, 3, 4, 5, 6, 7, 8, 9].map((position) => ({
    ...title(position, 100_000 + position),
    topic: 'radio/x/other',
  }))
  const late = { ...title(10, 90_000), at: 100_500 }
  const now = title(11, 103_000)
  const all = [newer, ...others, late, now]
  const parts = createParts({
    retained: {
      storedValues: (of) => (of === topic ? [toValue(now, 11, now.at)].flatMap((one) => one ?? []) : []),
    },
    history: {
      async messages(_id, { before = Infinity, limit }) {
        const messages = all
          .filter(({ position }) => position < before)
          .slice(-limit)
          .reverse()
        return { messages, next: messages.at(-1)?.position ?? null }
      },
    },
  })
  const found = await parts.of('x', { position: 10, now: 101_000 })
  t.same(
    found.flatMap(({ values }) => values).map(({ position }) => position),
    [1],
  )
})
