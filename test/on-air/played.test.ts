import t from 'tap'
import type { Entry } from '../../journal/entry.ts'
import { playedAt } from '../../on-air/played.ts'

t.test('a search costs what it reads, not what it finds', async (t) => {
  const messages: Entry[] = ['data', 'track/playing', 'data'].map((end, nth) => ({
    topic: `radio/x/${end}`,
    payload: Buffer.alloc(1_000),
    qos: 1,
    retained: { slot: '', time: 5 },
    queue: { keep: 'latest' },
    position: nth + 1,
    at: 5,
  }))
  const history = { messages: async () => ({ messages: messages.toReversed(), next: null }) }
  t.match(await playedAt(history, 'x', 9), { played: { playing: { position: 2 } }, readBytes: 3_000 })
  t.same(await playedAt(history, 'x', 1), { played: undefined, readBytes: 3_000 })
})
