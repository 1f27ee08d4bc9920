import t from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { closed, connect, connectPublisher } from '../../clients.ts'
import { control, controlTopic, institutions, playing, playingTopic, station } from '../../events.ts'
import { startFleet } from '../../nodes/fleet.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { withoutRedis } from '../../redis-server.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { until } from '../../until.ts'

/* Nodes whose clocks do not agree. */

const [own = ''] = institutions
const livestream = station(0, 0)
const other = station(0, 1)

t.test('a node whose clock is five seconds ahead', { skip: withoutRedis }, async (t) => {
  const receiver = await startReceiver(t, await temporaryDirectory(t))
  const { a, b, c } = await startFleet(t, 3, {
    ahead: (index) => (index === 1 ? 5_000 : 0),
    env: pushing(receiver),
  })
  const subscriber = await a.subscriber('radio/#')
  const publisher = await b.publisher([own])
  await Promise.all([a, b, c].map((node) => node.knows(2)))
  const studios = {
    right: await connectPublisher(t, a, publisher, own),
    ahead: await connectPublisher(t, b, publisher, own),
  }

  t.test('what is retained is the newest by event time, on every node', async (t) => {
    const at = Date.now()
    const published: [title: string, studio: keyof typeof studios, start: number][] = [
      ['newest', 'ahead', at],
      ['older', 'right', at - 1_000],
      ['older', 'ahead', at - 1],
      ['same time, later arrival', 'right', at],
      ['newer', 'ahead', at + 1],
      ['newer still', 'right', at + 2],
    ]
    for (const [title, studio, start] of published) {
      const event = playing(livestream, { title, start: new Date(start).toISOString() })
      t.match(await studios[studio].publish(event), { outcome: 'published' })
      const expected = title === 'older' ? 'newest' : title
      for (const node of [a, b, c]) {
        await until(async () => {
          const [value] = await node.ask<{ payload: string }[]>('retained.list', {
            filter: playingTopic(livestream),
          })
          return JSON.parse(value?.payload ?? '{}').title === expected
        })
      }
    }
  })

  t.test('a session is where its client logged in last', async (t) => {
    let before: Awaited<ReturnType<typeof connect>> | undefined
    for (const [index, node] of [b, a, b, a].entries()) {
      const gone = before && closed(before.client)
      const app = await connect(t, node, subscriber, { clientId: 'moves', clean: false })
      if (index === 0) await app.client.subscribeAsync('radio/+/control', { qos: 1 })
      await gone
      for (const other of [a, b, c]) {
        await until(async () => (await other.connected('moves'))?.node?.endsWith(node.name) === true)
      }
      await studios.ahead.publish(control(livestream, { name: `move ${index}` }))
      await app.received.until(({ json }) => json.name === `move ${index}`)
      before = app
    }
  })

  t.test('tokens, keys and credentials of one are good on the other', async (t) => {
    const apis = { right: await openApi(t, a), ahead: await openApi(t, b) }
    for (const [made, used, node] of [
      ['ahead', 'right', b],
      ['right', 'ahead', a],
    ] as const) {
      await node.ask('keys.rotate')
      const { token, refreshToken } = await addUser(node, apis[made], own)
      await until(async () => (await apis[used].call('GET', '/topics', { token })).status === 200)
      const body = { refreshToken }
      t.equal((await apis[used].call('POST', '/auth/refresh', { body })).status, 200)
    }
    const [keyA, keyB] = await Promise.all([a, b].map((node) => node.ask<{ kid: string }[]>('keys.list')))
    t.same(keyA?.[0], keyB?.[0], 'and both sign with the key made last')
    const { username } = await b.subscriber('radio/#')
    await until(async () => (await a.ask<unknown[]>('credentials.list')).length === 3)
    await a.ask('credentials.rotate', { username, revokeAfter: 60 })
    t.ok(await b.ask('credentials.show', { username }), 'a rotated one is not revoked before its time')
  })

  t.test('what waits keeps the order of its acceptance, also on a node that starts later', async (t) => {
    const api = await openApi(t, a)
    const { token } = await addUser(a, api, own)
    await studios.right.publish(playing(other, { title: 'makes the topic' }))
    const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic: other.id }
    await api.call('POST', '/subscriptions', { token, body: { ...body, url: receiver.url() } })
    await until(async () => (await b.ask<unknown[]>('queues.list')).length === 1)
    const sleeper = await connect(t, a, subscriber, { clientId: 'sleeper', clean: false })
    await sleeper.client.subscribeAsync(controlTopic(other), { qos: 1 })
    await sleeper.client.endAsync()

    receiver.behave(() => 503)
    const order = ['ahead', 'right', 'ahead', 'right'] as const
    const names = order.map((studio, index) => `${index} ${studio}`)
    for (const [index, studio] of order.entries()) {
      await studios[studio].publish(playing(other, { title: names[index] }))
      await studios[studio].publish(control(other, { name: names[index] }))
    }
    await c.kill()
    await c.start()
    await Promise.all([a.stop(), b.stop()])
    const again = await connect(t, c, subscriber, { clientId: 'sleeper', clean: false })
    await again.received.count(names.length)
    t.same(
      again.received.all.map(({ json }) => json.name),
      names,
    )
    const tried = receiver.received.length
    receiver.behave(() => 201)
    await receiver.until((received) => received.length >= tried + names.length)
    t.same(
      receiver.received.slice(tried).map(({ event }) => event.title),
      names,
    )
  })
})
