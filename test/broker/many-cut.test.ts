import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { openBroker, peer } from '../conformance/peers.ts'

t.test('the end of a credential with very many clients leaves turns to others', async (t) => {
  const broker = await openBroker(t)
  const count = 40
  await Promise.all(Array.from({ length: count }, (_, nth) => peer(t, broker, `c${nth}`)))
  t.equal(broker.broker.connectionCount(), count)
  const { now } = performance
  t.teardown(() => {
    performance.now = now
  })
  // Each look at the clock takes a millisecond, so that all of them take many turns on every machine.
  let looks = 0
  performance.now = () => now.call(performance) + ++looks
  broker.broker.disconnectUser('everybody')
  let turns = 0
  for (; broker.broker.connectionCount() > 0; turns++) await nextTurn()
  t.ok(turns > 2, `${turns} turns`)
})
