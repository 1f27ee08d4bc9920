import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { AuditEntry } from '../../../admin/audit.ts'
import { sampleFeedPath } from '../../../config/sample-feed.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { closed, connect, connectPublisher } from '../../clients.ts'
import { control, controlTopic, institutions, playing, playingTopic, station } from '../../events.ts'
import { startFleet } from '../../nodes/fleet.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { withoutRedis } from '../../redis-server.ts'
import { type Issued, temporaryDirectory } from '../../start-hub.ts'
import { until } from '../../until.ts'

/* Through any node, `hubctl` acts on all nodes, and sees at once what another node has changed. */

const [own = ''] = institutions
const livestream = station()

interface Counted {
  subscribers: number
  ofAll: number
}

/** Starts two nodes. */
async function start(t: Test) {
  const home = await temporaryDirectory(t)
  const feed = join(home, 'feed.json')
  await copyFile(sampleFeedPath, feed)
  const receiver = await startReceiver(t, home)
  const limits = { HUB_QUEUE_LIMIT: '3', HUB_WORK_QUEUE_LIMIT: '2' }
  const { a, b } = await startFleet(t, 2, { env: { ...pushing(receiver), ...limits, HUB_FEED: feed } })
  return { a, b, feed, receiver }
}

/** Asks again as long as the other node does not answer in time. That node may have done it all the same. */
async function patiently(ask: () => Promise<unknown>): Promise<void> {
  for (let isRepeated = false; ; isRepeated = true) {
    try {
      await ask()
      return
    } catch (error) {
      if (isRepeated && /there is no/.test(String(error))) return
      if (!/did not answer: try again/.test(String(error))) throw error
    }
  }
}

t.test('hubctl on any of two nodes', { skip: withoutRedis }, async (t) => {
  const { a, b, feed, receiver } = await start(t)
  const subscriber = await a.subscriber('radio/#')
  const publisher = await a.publisher([own])
  await b.knows(2)
  const studios = {
    a: await connectPublisher(t, a, publisher, own),
    b: await connectPublisher(t, b, publisher, own),
  }

  t.test('a credential made on one is shown, rotated and revoked on the other', async (t) => {
    const { username, password } = await a.subscriber('radio/#')
    t.match(await b.ask('credentials.show', { username }), { username, role: 'subscriber' })
    const rotated = await b.ask<Issued>('credentials.rotate', { username })
    await connect(t, b, { username, password })
    await a.ask('credentials.revoke', { username })
    await t.rejects(b.ask('credentials.show', { username }))
    await b.ask('credentials.revoke', { username: rotated.username })
    // A pause of the machine lengthens some rounds, but not all of them.
    let shortest = Infinity
    for (let round = 0; round < 5 && shortest >= 1000; round++) {
      const login = await a.subscriber('radio/#')
      await b.ask('credentials.show', { username: login.username })
      const { client } = await connect(t, b, login)
      const gone = closed(client).then(() => performance.now())
      await a.ask('credentials.revoke', { username: login.username })
      // The second begins with the answer. Before that, the command waits for the store.
      const revoked = performance.now()
      shortest = Math.min(shortest, (await gone) - revoked)
    }
    t.ok(shortest < 1000, 'a connection to the other node is closed within a second')
    t.equal((await a.ask<unknown[]>('credentials.list')).length, 2)
  })

  t.test('users and signing keys', async (t) => {
    const user = { email: 'kim@a.example', institution: own }
    await a.ask('users.add', user)
    await t.rejects(b.ask('users.add', user), { message: /already/ })
    t.match(await b.ask('users.list'), [{ email: user.email }])
    t.match(await b.ask('users.reset-password', { email: user.email }), { resetToken: /./ })
    await b.ask('users.remove', { email: user.email })
    t.same(await a.ask('users.list'), [])
    const { kid } = await b.ask<{ kid: string }>('keys.rotate')
    t.match(await a.ask('keys.list'), [{ kid }, {}])
  })

  t.test('the feed is read by all', async (t) => {
    const { items } = JSON.parse(await readFile(feed, 'utf8'))
    const external = 'crid://hub.example/renamed'
    items.at(-1).externalId = external
    await writeFile(feed, JSON.stringify({ items }))
    t.match(await b.ask('feed.diff'), { differences: { renamed: { count: 1 } } })
    t.match(await a.ask('feed.refresh', { force: false }), { ok: true })
    await until(() =>
      b.ask('feed.lookup', { id: external }).then(
        () => true,
        () => false,
      ),
    )
    t.match(await b.ask('feed.status'), { ok: true, items: items.length })
  })

  t.test('clients of all nodes are listed, with their node, and disconnected', async (t) => {
    const here = await connect(t, a, subscriber, { clientId: 'on-a' })
    const there = await connect(t, b, subscriber, { clientId: 'on-b', clean: false })
    const nodeNames = { a: new RegExp(`${a.name}$`), b: new RegExp(`${b.name}$`) }
    for (const node of [a, b]) {
      let clients: { clientId: string }[] = []
      const nodeOf = (clientId: string) => clients.find((client) => client.clientId === clientId)
      // The list lacks the clients of a node that does not answer in time.
      await until(async () => {
        clients = await node.ask('clients.list')
        return nodeOf('on-a') !== undefined && nodeOf('on-b') !== undefined
      })
      t.match(nodeOf('on-a'), { node: nodeNames.a, address: '127.0.0.1' })
      t.match(nodeOf('on-b'), { node: nodeNames.b, address: '127.0.0.1' })
    }
    await here.client.subscribeAsync(`radio/${livestream.id}/#`)
    await there.client.subscribeAsync([`radio/${livestream.id}/control`, 'radio/#'])
    for (const node of [a, b]) {
      await until(async () => {
        const [counted] = await node.ask<Counted[]>('clients.count', { livestream: livestream.id })
        return counted?.subscribers === 1 && counted.ofAll === 1
      })
    }
    const gone = [closed(here.client), closed(there.client)]
    await patiently(() => b.ask('clients.disconnect', { clientId: 'on-a' }))
    await patiently(() => a.ask('clients.disconnect', { clientId: 'on-b' }))
    await Promise.all(gone)
    await t.rejects(a.ask('clients.disconnect', { clientId: 'nobody' }), { message: /nobody/ })
  })

  t.test('sessions are listed with all that became of them, and dropped', async (t) => {
    const kept = { clientId: 'kept', clean: false }
    const { client } = await connect(t, a, subscriber, kept)
    await client.subscribeAsync(controlTopic(livestream), { qos: 1 })
    await client.endAsync()
    for (const studio of ['a', 'b', 'a', 'b', 'a', 'b'] as const) {
      await studios[studio].publish(control(livestream))
    }
    const shown = { clientId: 'kept', connected: false, node: null, queued: 3, inFlight: 0, dropped: 3 }
    const sessionOn = async (node: typeof a) =>
      (await node.ask<{ clientId: string }[]>('sessions.list')).find(({ clientId }) => clientId === 'kept')
    for (const node of [a, b]) {
      t.match(await sessionOn(node), { clientId: 'kept', connected: false, node: null })
      t.match(await node.ask('sessions.show', { clientId: 'kept' }), shown)
    }
    const back = await connect(t, a, subscriber, kept)
    const gone = closed(back.client)
    await patiently(() => b.ask('sessions.drop', { clientId: 'kept' }))
    await gone
    for (const node of [a, b]) t.equal(await sessionOn(node), undefined)
    const again = await connect(t, a, subscriber, kept)
    await again.client.endAsync()
    await patiently(() => b.ask('sessions.drop', { clientId: 'kept' }))
    t.equal(await sessionOn(a), undefined)
  })

  t.test('retained messages', async (t) => {
    await studios.a.publish(playing(livestream))
    const topic = playingTopic(livestream)
    t.match(await b.ask('retained.list', { filter: topic }), [{ topic }])
    await b.ask('retained.clear', { topic })
    t.same(await a.ask('retained.list', { filter: topic }), [])
  })

  t.test('queues are listed with all that became of them, whichever node works them off', async (t) => {
    const api = await openApi(t, a)
    const { token } = await addUser(a, api, own)
    receiver.behave(() => 400)
    const topics = [station(0, 1), station(0, 2), station(0, 3), station(0, 4)]
    for (const topic of topics) {
      await studios.a.publish(playing(topic, { title: 'makes the topic' }))
      const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic: topic.id }
      await api.call('POST', '/subscriptions', { token, body: { ...body, url: receiver.url() } })
      for (const title of ['1', '2', '3', '4']) await studios.a.publish(playing(topic, { title }))
    }
    type Shown = { name: string; dropped: number; lastReason: string | null; state: string }
    const queuesOn = (node: typeof a) => node.ask<Shown[]>('queues.list')
    for (const node of [a, b]) {
      await until(async () => {
        const queues = await queuesOn(node)
        return queues.length === 4 && queues.every(({ dropped, lastReason }) => dropped === 2 && lastReason)
      })
      for (const { name } of await queuesOn(node)) {
        t.match(await node.ask('queues.attempts', { name }), [{ status: 400 }])
      }
    }
  })

  t.test('dry runs and the life cycle', async (t) => {
    const payload = Buffer.from(JSON.stringify(playing(station(0, 1)))).toString('base64')
    t.match(await b.ask('check', { payload, institution: own }), { outcome: 'published' })
    const link = 'https://hub.example/migration'
    await a.ask('lifecycle.announce', { track: 'push', sunset: '2020-01-01', link })
    t.match(await b.ask('lifecycle.status'), [{ track: 'push', state: 'deprecated' }, {}])
    await b.ask('lifecycle.brownout', { track: 'push', for: 600 })
    t.match(await a.ask('lifecycle.status'), [{ track: 'push', brownoutUntil: /^\d{4}-/ }, {}])
    await t.rejects(b.ask('lifecycle.retire', { track: 'push' }), { message: /request/ }, 'on the other node')
  })

  t.test('the audit log of one shows what was done on both', async (t) => {
    const entries = await a.ask<AuditEntry[]>('audit')
    t.same(await b.ask('audit'), entries)
    for (const node of [a, b]) t.ok(entries.some((entry) => entry.node?.endsWith(node.name)))
    const action = (name: string) => entries.find((entry) => entry.action === name)
    t.ok(action('lifecycle.announce')?.node?.endsWith(a.name))
    t.ok(action('users.remove')?.node?.endsWith(b.name))
  })

  t.test('status, trend and configuration are those of the node that is asked', async (t) => {
    for (const node of [a, b]) {
      t.match(await node.ask('trend'), { node: String, everySeconds: 10 })
      t.match(await node.ask('status'), {
        node: new RegExp(`${node.name}$`),
        store: { driver: 'redis', ok: true, problem: null },
      })
      await t.rejects(node.ask('store.accept'), { message: /not replaced/ })
    }
    t.match(await a.ask('config'), { publicUrl: 'https://hub.example' })
  })
})
