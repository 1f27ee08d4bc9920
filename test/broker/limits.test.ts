import t from 'tap'
import { createPublishRate } from '../../broker/limits.ts'
import { connect, connectPublisher } from '../clients.ts'
import { playing, station } from '../events.ts'
import { startTestHub } from '../start-hub.ts'

t.test('a credential may publish its rate, and a burst of twice that', async (t) => {
  const rate = createPublishRate(10)
  const burst = Array.from({ length: 20 }, () => rate.take('a', 0))
  t.same(burst, Array(20).fill(0))
  t.equal(rate.take('a', 0), 100, 'then reading pauses for the time of one event')
  t.equal(rate.take('b', 0), 0, 'others are not held back')
  t.equal(rate.take('a', 1000), 0, 'after a while it goes on')
  t.equal(createPublishRate(0).take('a', 0), 0, '0 is no limit')
})

t.test('above the rate publishing slows down, and nothing is lost', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLISH_RATE: '50' })
  const livestream = station()
  const institution = livestream.institution.id
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const began = performance.now()
  const other = await connect(t, hub, await hub.publisher([institution]))
  const all = Array.from({ length: 150 }, (_, index) =>
    publisher.client.publishAsync(
      `inbox/${institution}`,
      JSON.stringify(playing(livestream, { playlistItemId: `${index}` })),
      { qos: 1 },
    ),
  )
  await other.client.publishAsync(`inbox/${institution}`, JSON.stringify(playing(livestream)), { qos: 1 })
  t.ok(performance.now() - began < 1000, 'another credential is not held back')
  await Promise.all(all)
  await publisher.received.count(151)
  t.ok(performance.now() - began > 900, '50 of 150 events had to wait for one second')
})
