import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { AuditEntry } from '../../../admin/audit.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { institutions, playing, station } from '../../events.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { startRedis, withoutRedis } from '../../redis-server.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'

/*
 * A pause holds on all nodes, whichever of them works off the queue.
 */
const [own = ''] = institutions
const livestreams = [0, 1, 2, 3, 4, 5].map((index) => station(0, index))
const playingUrl = '/events/de.org.hub.v1.radio.track.playing'

interface Row {
  name: string
  livestream: { id: string }
  state: string
  pending: number
}

/** Starts two nodes on one Redis, and adds a webhook for each livestream. */
async function start(t: Test) {
  const redis = await startRedis(t)
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const shared = { HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' }
  const open = (name: string) => startTestHub(t, { ...pushing(receiver), ...shared }, join(home, name))
  const [a, b] = [await open('a'), await open('b')]
  const api = await openApi(t, a)
  const { token } = await addUser(a, api, own)
  /** Publishes an event for each livestream, in separate requests. */
  const publish = async (title: string) => {
    for (const livestream of livestreams) {
      await api.call('POST', playingUrl, { token, body: playing(livestream, { title }) })
    }
  }
  await publish('makes the topic')
  for (const { id } of livestreams) {
    const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic: id, url: receiver.url() }
    await api.call('POST', '/subscriptions', { token, body })
  }
  const list = (node: typeof a) => node.ask<Row[]>('subscriptions.list')
  return { receiver, open, a, b, api, token, publish, list }
}

const titlesOf = (received: readonly { event: Record<string, unknown> }[]) =>
  received.map(({ event }) => String(event.title))

t.test('a pause at one node holds on all, and survives each of them', { skip: withoutRedis }, async (t) => {
  const { receiver, open, a, b, publish, list } = await start(t)
  for (const { name } of await list(b)) await b.ask('subscriptions.pause', { name })
  await publish('One')
  await publish('Two')
  for (const node of [a, b]) {
    t.match(
      await list(node),
      livestreams.map(() => ({ state: 'paused', pending: 2 })),
    )
  }
  await b.close()
  const c = await open('c')
  await publish('Three')
  t.match(
    await list(c),
    livestreams.map(() => ({ state: 'paused', pending: 3 })),
  )
  t.same(receiver.received, [], 'nothing was sent, also not by the nodes that took over')
  for (const { name } of await list(c)) t.match(await c.ask('subscriptions.resume', { name }), { name })
  await receiver.until((received) => received.length === 3 * livestreams.length)
  for (const { name } of await list(a)) {
    const ofOne = receiver.received.filter(({ body }) => body.subscription === name)
    t.same(titlesOf(ofOne), ['One', 'Two', 'Three'], 'in order')
  }
})

t.test('when a pause is answered, no node begins another delivery', { skip: withoutRedis }, async (t) => {
  const { receiver, a, b, publish, list } = await start(t)
  receiver.behave((_pushed, response) => {
    setTimeout(() => response.writeHead(201).end(), 5)
    return undefined
  })
  for (let number = 0; number < 10; number++) await publish(String(number))
  const names = (await list(a)).map(({ name }) => name)
  const arrived = (name: string) => receiver.received.filter(({ body }) => body.subscription === name).length
  const atAnswer = new Map<string, number>()
  for (const [index, name] of names.entries()) {
    await (index % 2 === 0 ? a : b).ask('subscriptions.pause', { name })
    atAnswer.set(name, arrived(name))
  }
  await publish('10')
  for (const [name, before] of atAnswer) {
    t.ok(arrived(name) <= before + 1, 'at most the one that was under way')
  }
  for (const name of names) await a.ask('subscriptions.resume', { name })
  await receiver.until((received) => received.length === 11 * livestreams.length)
  for (const name of names) {
    const ofOne = receiver.received.filter(({ body }) => body.subscription === name)
    t.same(
      titlesOf(ofOne),
      Array.from({ length: 11 }, (_, number) => String(number)),
    )
  }
})

t.test(
  'two operators at two nodes: one pauses, and the other is told who',
  { skip: withoutRedis },
  async (t) => {
    const { a, b, api, token, list } = await start(t)
    for (const { name } of await list(a)) {
      const outcomes = await Promise.allSettled(
        [a, b].map((node) => node.ask('subscriptions.pause', { name })),
      )
      const [done, refused] = outcomes.sort((one, other) => (one.status < other.status ? -1 : 1))
      t.match(done, { status: 'fulfilled' })
      t.match(refused, {
        status: 'rejected',
        reason: { message: /^tester paused it already, at 2/ },
      })
    }
    const entries = await a.ask<AuditEntry[]>('audit')
    const made = (name: string) =>
      entries.filter(({ target }) => target === name).filter(({ detail }) => !Object(detail).failed).length -
      entries.filter(({ target }) => target === name).filter(({ detail }) => Object(detail).failed).length
    for (const { name } of await list(a)) t.equal(made(name), 1, 'the audit log has one that was made')

    const [first, second] = await list(b)
    const names = [first?.name ?? '', second?.name ?? '']
    t.match(await b.ask('subscriptions.remove', { name: names[0] }), { removed: true })
    t.equal((await api.call('DELETE', `/subscriptions/${names[1]}`, { token })).status, 200)
    for (const [node, name] of [
      [a, names[0]],
      [b, names[1]],
    ] as const) {
      await t.rejects(node.ask('subscriptions.show', { name }), {
        message: `there is no subscription "${name}"`,
      })
    }
    t.equal((await list(a)).length, livestreams.length - 2)
  },
)
