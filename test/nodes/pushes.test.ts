import { join } from 'node:path'
import t, { type Test } from 'tap'
import { connectPublisher } from '../clients.ts'
import { institutions, playing, station } from '../events.ts'
import { addUser, openApi } from '../https/api.ts'
import { pushing, startReceiver } from '../receiver.ts'
import { startRedis, withoutRedis } from '../redis-server.ts'
import { startTestHub, temporaryDirectory } from '../start-hub.ts'

/*
 * Queues of webhooks on several nodes: each is worked off by one of them, in order, wherever events come in.
 */
const [own = ''] = institutions
const livestreams = [0, 1, 2, 3, 4, 5].map((index) => station(0, index))

async function start(t: Test) {
  const redis = await startRedis(t)
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const env = { ...pushing(receiver), HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' }
  const open = (name: string) => startTestHub(t, env, join(home, name))
  const [a, b] = [await open('a'), await open('b')]
  const api = await openApi(t, a)
  const { token } = await addUser(a, api, own)
  const publisher = await a.publisher([own])
  await b.until(async () => (await b.ask<unknown[]>('credentials.list')).length === 1)
  const studios = {
    a: await connectPublisher(t, a, publisher, own),
    b: await connectPublisher(t, b, publisher, own),
  }
  for (const livestream of livestreams) {
    await studios.a.publish(playing(livestream, { title: 'makes the topic' }))
    const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic: livestream.id }
    await api.call('POST', '/subscriptions', { token, body: { ...body, url: receiver.url() } })
  }
  return { receiver, open, a, b, api, token, studios }
}

const titlesOf = (received: readonly { event: Record<string, unknown> }[]) =>
  received.map(({ event }) => String(event.title))

t.test(
  'each event is pushed once and in order, whichever node it came in at',
  { skip: withoutRedis },
  async (t) => {
    const { receiver, b, studios } = await start(t)
    const published: string[] = []
    for (let number = 0; number < 10; number++) {
      for (const [index, livestream] of livestreams.entries()) {
        const title = `${index} ${number}`
        published.push(title)
        await studios[(number + index) % 2 === 0 ? 'a' : 'b'].publish(playing(livestream, { title }))
      }
    }
    await receiver.until((received) => received.length >= published.length)
    t.same(titlesOf(receiver.received).sort(), published.sort(), 'every one, once')
    for (const index of livestreams.keys()) {
      const own = titlesOf(receiver.received).filter((title) => title.startsWith(`${index} `))
      t.same(
        own,
        Array.from({ length: 10 }, (_, number) => `${index} ${number}`),
        `in order for ${index}`,
      )
    }
    const queues = await b.ask<{ pending: number }[]>('queues.list')
    await b.until(async () =>
      (await b.ask<{ pending: number }[]>('queues.list')).every(({ pending }) => pending === 0),
    )
    t.equal(queues.length, livestreams.length)
  },
)

t.test('the queues of a node that stops, and of one that comes, go on', { skip: withoutRedis }, async (t) => {
  const { receiver, open, a, b, studios } = await start(t)
  receiver.behave(() => 503)
  for (const livestream of livestreams) await studios.b.publish(playing(livestream, { title: livestream.id }))
  await receiver.until((received) => new Set(titlesOf(received)).size === livestreams.length)
  const c = await open('c')
  await a.close()
  receiver.behave(() => 201)
  const done = new Set<string>()
  await receiver.until((received) => {
    for (const { event, body } of received.slice(livestreams.length))
      if (body.subscription) done.add(String(event.title))
    return done.size === livestreams.length
  })
  for (const node of [b, c]) {
    await node.until(async () =>
      (await node.ask<{ pending: number }[]>('queues.list')).every(({ pending }) => pending === 0),
    )
  }
  t.pass('nothing is left')
})

t.test('replay and removal work on any node', { skip: withoutRedis }, async (t) => {
  const { receiver, a, b, studios, api, token } = await start(t)
  receiver.behave(() => 410)
  for (const livestream of livestreams) await studios.a.publish(playing(livestream, { title: livestream.id }))
  const states = async () =>
    await b.ask<{ name: string; state: string; deadLetters: number }[]>('queues.list')
  await b.until(async () => (await states()).every(({ deadLetters }) => deadLetters === 1))
  receiver.behave(() => 201)
  const before = receiver.received.length
  for (const { name } of await states()) {
    t.match(await b.ask('queues.dead-letters', { name }), [{ reason: 'the endpoint answered 410' }])
    t.match(await b.ask('queues.replay', { name }), { replayed: 1 })
  }
  await receiver.until((received) => received.length >= before + livestreams.length)
  t.match(
    await a.ask('queues.list'),
    livestreams.map(() => ({ deadLetters: 0 })),
  )
  for (const { name } of await states()) {
    t.equal((await api.call('DELETE', `/subscriptions/${name}`, { token })).status, 200)
  }
  await b.until(async () => (await states()).length === 0)
  t.pass('and the other node knows')
})
