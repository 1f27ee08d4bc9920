import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { openBroker, peer } from '../conformance/peers.ts'

t.test('the end of a credential with very many clients leaves turns to others', async (t) => {
  const broker = await openBroker(t)
  const count = 400
  for (let done = 0; done < count; done += 50)
    await Promise.all(Array.from({ length: 50 }, (_, nth) => peer(t, broker, `c${done + nth}`)))
  t.equal(broker.broker.connectionCount(), count)
  broker.broker.disconnectUser('everybody')
  let turns = 0
  for (; broker.broker.connectionCount() > 0; turns++) await nextTurn()
  t.ok(turns > 2, `${turns} turns`)
})
