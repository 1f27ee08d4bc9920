import { closed, connect } from '../../clients.ts'
import { playing, playingTopic, stations } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'

onEachStore('100 publishers, 50 events each in flight: everybody gets everything', async (t, store) => {
  const hub = await startTestHub(t, { ...store, HUB_PUBLISH_RATE: '0' })
  const subscribers = await Promise.all(
    [0, 1, 1].map(async (qos, index) => {
      const app = await connect(t, hub, await hub.subscriber('radio/#'), {
        clientId: `app-${index}`,
        clean: index !== 2,
      })
      await app.client.subscribeAsync('radio/#', { qos: qos === 0 ? 0 : 1 })
      return app
    }),
  )
  const livestreams = stations.flat()
  const publishers = await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      const livestream = livestreams[index % livestreams.length]
      if (!livestream) throw new Error('no livestreams')
      const { client } = await connect(t, hub, await hub.publisher([livestream.institution.id]))
      return { client, livestream, index }
    }),
  )
  // A publish on a cut connection is never acknowledged: fail at once.
  const cutOff = Promise.race(publishers.map(({ client }) => closed(client))).then(() => {
    throw new Error('a publisher was cut off')
  })
  const start = Date.now() - 10_000
  const expected = new Set<string>()
  const acknowledged = Promise.all(
    publishers.flatMap(({ client, livestream, index }) =>
      Array.from({ length: 50 }, (_, number) => {
        const playlistItemId = `${index}-${number}`
        expected.add(playlistItemId)
        const event = playing(livestream, { playlistItemId, start: new Date(start + number).toISOString() })
        return client.publishAsync(`inbox/${livestream.institution.id}`, JSON.stringify(event), { qos: 1 })
      }),
    ),
  )
  await Promise.race([acknowledged, cutOff])
  for (const [index, app] of subscribers.entries()) {
    await app.received.count(expected.size)
    const arrived = app.received.all.map(({ json }) => `${json.playlistItemId}`)
    t.equal(arrived.length, expected.size, `subscriber ${index}: each once`)
    t.same(new Set(arrived), expected, `subscriber ${index}: all of them`)
  }
  const late = await connect(t, hub, await hub.subscriber('radio/#'))
  await late.client.subscribeAsync('radio/#', { qos: 0 })
  await late.received.count(livestreams.length)
  for (const livestream of livestreams) {
    const value = await late.received.until(({ topic }) => topic === playingTopic(livestream))
    t.match(
      `${value.json.playlistItemId}`,
      /-49$/,
      `${livestream.title}: the newest by event time is retained`,
    )
  }
})
