import t from 'tap'
import type { Owed } from '../../../broker/session/in-flight.ts'
import { Waiting } from '../../../broker/session/waiting.ts'

const owed = (count: number): Owed[] =>
  Array.from({ length: count }, (_, nth) => ({ position: nth + 1, qos: 1, retain: false, dup: false }))

t.test('messages leave in their order, and the others wait on', async (t) => {
  const all = owed(7)
  const waiting = new Waiting(all)
  for (let sent = 0; sent <= all.length; sent++) {
    t.equal(waiting.length, all.length - sent)
    t.equal(waiting.first, all[sent])
    t.same(waiting.list(), all.slice(sent))
    t.same(waiting.list(2), all.slice(sent, sent + 2))
    t.same(waiting.list(0), [])
    if (sent < all.length) waiting.shift()
  }
})

t.test('where none waits, none leaves', async (t) => {
  const waiting = new Waiting()
  waiting.shift()
  t.strictSame([waiting.length, waiting.first, waiting.list()], [0, undefined, []])
})
