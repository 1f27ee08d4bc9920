import { join } from 'node:path'
import t, { type Test } from 'tap'
import { deadLetterChange, readWork, removal, workPrefix } from '../../../delivery/queue/work-records.ts'
import { journalKey, readEntry } from '../../../journal/entry.ts'
import { openRedisStore } from '../../../store/redis/redis.ts'
import type { Change, Store } from '../../../store/store.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { startMailServer } from '../../bridge-https/users/mail-server.ts'
import { writeConfig } from '../../bridge-https/users/write-config.ts'
import { connectPublisher } from '../../clients.ts'
import { institutions, playing, station } from '../../events.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { startRedis, withoutRedis } from '../../redis-server.ts'
import { webhookLibraries } from '../../standard-webhooks.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'

/*
 * Whichever nodes accept events, one node works off the queue of a webhook, in order.
 */
const [own = ''] = institutions
const livestreams = [0, 1, 2, 3, 4, 5].map((index) => station(0, index))

async function start(t: Test, settings: Record<string, string> = {}) {
  const redis = await startRedis(t)
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const shared = { HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' }
  const env = { ...pushing(receiver), ...shared, ...settings }
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
  for (const [index, livestream] of livestreams.entries()) {
    await studios.a.publish(playing(livestream, { title: 'makes the topic' }))
    // The hub sends at most three mails an hour to one address.
    const contact = `contact-${index}@b.example`
    const body = { type: 'PUBSUB', method: 'PUSH', contact, topic: livestream.id }
    await api.call('POST', '/subscriptions', { token, body: { ...body, url: receiver.url() } })
  }
  return { receiver, redis, open, a, b, api, token, studios }
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

/** Commits changes as another node would. So the nodes of the test hear of them. */
async function commit(t: Test, url: string, changesFor: (store: Store) => Promise<Change[]>): Promise<void> {
  const store = await openRedisStore({ server: { url }, project: 'hub', stage: 'test' })
  t.teardown(store.close)
  await store.commit(await changesFor(store))
}

t.test('replay and removal work on any node', { skip: withoutRedis }, async (t) => {
  const { receiver, redis, a, b, studios, api, token } = await start(t)
  receiver.behave(() => 410)
  for (const livestream of livestreams) await studios.a.publish(playing(livestream, { title: livestream.id }))
  await receiver.until((received) => new Set(titlesOf(received)).size === livestreams.length)
  // Make all waiting items dead letters, as the hub does after seven days.
  const acceptedAt = Date.now() - 7 * 24 * 3_600_000
  await commit(t, redis.url, async (store) => {
    const { items } = await readWork(store)
    const letters = { enqueuedAt: acceptedAt, givenUpAt: new Date().toISOString(), reason: 'too old' }
    const changes = items.map(async ([queue, { position, seen: _here, ...item }]) => {
      const message = await store.get(journalKey(position))
      const payload = message && readEntry(position, message).entry.payload
      return [removal(workPrefix, queue, item), deadLetterChange(queue, { ...item, ...letters }, payload)]
    })
    return (await Promise.all(changes)).flat()
  })
  const states = async () =>
    await b.ask<{ name: string; pending: number; deadLetters: number }[]>('queues.list')
  await b.until(async () =>
    (await states()).every(({ pending, deadLetters }) => pending === 0 && deadLetters === 1),
  )
  receiver.behave(() => 201)
  const before = receiver.received.length
  for (const { name } of await states()) {
    t.match(await b.ask('queues.dead-letters', { name }), [{ reason: 'too old' }])
    const answers = await Promise.all(
      [a, b].map((node) => node.ask<{ replayed: number }>('queues.replay', { name })),
    )
    const counts = answers.map(({ replayed }) => replayed)
    t.same(counts.sort(), [0, 1], 'by one of two at once')
  }
  await receiver.until((received) => received.length >= before + livestreams.length)
  for (const node of [a, b]) {
    await node.until(async () =>
      (await node.ask<Queue[]>('queues.list')).every(
        ({ pending, deadLetters }) => pending === 0 && deadLetters === 0,
      ),
    )
  }
  const replayed = receiver.received.slice(before)
  t.equal(new Set(titlesOf(replayed)).size, replayed.length, 'each once')
  for (const { body } of replayed) t.equal(Date.parse(body.message.publishTime), acceptedAt)
  for (const { name } of await states()) {
    t.equal((await api.call('DELETE', `/subscriptions/${name}`, { token })).status, 200)
  }
  await b.until(async () => (await states()).length === 0)
  t.pass('and the other node knows')
})

t.test(
  'a webhook is disabled once, every node shows it, and any enables it',
  { skip: withoutRedis },
  async (t) => {
    const mail = await startMailServer(t)
    const smtp = { host: '127.0.0.1', port: mail.port, from: 'hub@hub.example' }
    const one = await start(t, { HUB_CONFIG: await writeConfig(t, { smtp }) })
    const { receiver, redis, a, b, studios, api, token } = one
    receiver.behave(() => 410)
    for (const livestream of livestreams)
      await studios.a.publish(playing(livestream, { title: livestream.id }))
    const list = async () => (await api.call('GET', '/subscriptions', { token })).json as unknown as Shown[]
    await a.until(async () => (await list()).every(({ state }) => state === 'retrying'))
    await commit(t, redis.url, async () =>
      (await list()).map(({ name, since, reason }) => ({
        put: `push-standing/${name}`,
        value: JSON.stringify({ state: 'retrying', since, reason, gone: { at: Date.now(), ms: 3_599_999 } }),
      })),
    )
    await a.until(async () => (await list()).every(({ state }) => state === 'disabled'))
    for (const _livestream of livestreams) await mail.next()
    for (const node of [a, b]) {
      await node.until(async () =>
        (await node.ask<{ state: string; pending: number }[]>('queues.list')).every(
          ({ state, pending }) => state === 'disabled' && pending === 1,
        ),
      )
    }
    receiver.behave(() => 201)
    const before = receiver.received.length
    for (const { name } of await list()) t.match(await b.ask('queues.replay', { name }), { replayed: 0 })
    await receiver.until((received) => received.length >= before + livestreams.length)
    await a.until(async () => (await list()).every(({ state }) => state === 'active'))
    t.equal(mail.count(), livestreams.length, 'one mail for each')
  },
)

t.test('every node closes its queues when push has retired on another', { skip: withoutRedis }, async (t) => {
  const { receiver, redis, a, b, studios } = await start(t)
  receiver.behave(() => 503)
  for (const livestream of livestreams) await studios.a.publish(playing(livestream, { title: livestream.id }))
  await receiver.until((received) => new Set(titlesOf(received)).size === livestreams.length)
  const at = new Date().toISOString()
  const gone = { track: 'push', state: 'gone', announcedAt: at, sunset: at, link: 'x', retiredAt: at }
  await commit(t, redis.url, async () => [{ put: 'lifecycle/push', value: JSON.stringify(gone) }])
  for (const node of [a, b]) {
    await node.until(async () =>
      (await node.ask<{ state: string; pending: number; deadLetters: number }[]>('queues.list')).every(
        ({ state, pending, deadLetters }) => state === 'closed' && pending === 0 && deadLetters === 1,
      ),
    )
  }
  const tried = receiver.received.length
  receiver.behave(() => 201)
  for (const studio of [studios.a, studios.b]) {
    for (const livestream of livestreams) await studio.publish(playing(livestream, { title: 'too late' }))
  }
  for (const node of [a, b]) {
    for (const { name, pending, deadLetters } of await node.ask<Queue[]>('queues.list')) {
      t.same([pending, deadLetters], [0, 1], 'nothing is collected')
      await t.rejects(node.ask('queues.replay', { name }), { message: /push has retired/ })
    }
  }
  t.equal(receiver.received.length, tried)
})

interface Queue {
  name: string
  pending: number
  deadLetters: number
}

interface Shown {
  name: string
  state: string
  since: string
  reason: string
}

t.test('a secret signs at once, whichever node delivers', { skip: withoutRedis }, async (t) => {
  const { receiver, api, token, studios } = await start(t)
  const { json } = await api.call('GET', '/subscriptions', { token })
  const names = Array.isArray(json) ? json.map(({ name }) => String(name)) : []
  t.equal(names.length, livestreams.length)
  const secrets = new Map<string, string>()
  for (let round = 0; round < 5; round++) {
    for (const name of names) {
      const made = await api.call('POST', `/subscriptions/${name}/secret`, { token })
      secrets.set(name, String(made.json.secret))
    }
    const before = receiver.received.length
    for (const [index, livestream] of livestreams.entries()) {
      const title = `${index} ${round}`
      await studios[index % 2 === round % 2 ? 'a' : 'b'].publish(playing(livestream, { title }))
    }
    await receiver.until((received) => received.length === before + livestreams.length)
    for (const { headers, raw, body } of receiver.received.slice(before)) {
      for (const [name, { Webhook }] of webhookLibraries) {
        const webhook = new Webhook(secrets.get(body.subscription) ?? '')
        t.doesNotThrow(() => webhook.verify(raw, headers as Record<string, string>), name)
      }
    }
  }
})
