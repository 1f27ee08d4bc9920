import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createTakeOver } from '../../../broker/take-over.ts'
import { formerWork } from '../../../delivery/queue/former-work.ts'
import { openEmbeddedStore } from '../../../store/embedded.ts'
import type { Store } from '../../../store/store.ts'
import { formatKey } from '../../../store/stored-value.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { control, stations } from '../../events.ts'
import {
  type FormerStore,
  fillDirectory,
  fillRedis,
  readFormerStore,
  withWorkFor,
} from '../../former-release.ts'
import { rawClient } from '../../raw-client.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { type Issued, startTestHub, type TestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore, openStoreOf, type StoreSettings } from '../../stores.ts'

const waiting = ['waiting 0', 'waiting 1', 'waiting 2', 'track 2', ...Array(7).fill('shared later')]
const owed = ['shared', 'sent 0', 'sent 1', 'sent 2', ...waiting, 'waiting 3', 'reported', 'once']
const log = pino({ level: 'silent' })

onEachStore('a store of the release before goes on as one of this release', async (t, settings, driver) => {
  const home = await temporaryDirectory(t)
  const former = readFormerStore(driver)
  await fill(t, settings, home, former)
  const hub = await startTestHub(t, settings, home)
  t.ok(said(hub, 'the store of the former release is taken over'))

  const app = await persistent(t, hub, 'app', former.subscriber)
  await app.next('publish', owed.length - 1)
  await app.settled()
  const received = app.packets.filter((packet) => packet.cmd === 'publish')
  t.same(
    received.map(({ payload }) => nameIn(payload)),
    owed,
    'all that it was owed, in order',
  )
  t.same(
    received.map(({ dup }) => dup),
    owed.map((_, index) => index < 4),
    'DUP on what it had been sent',
  )
  t.same(
    received.map(({ retain }) => retain),
    owed.map((_, index) => index === 0),
    'and what was retained',
  )
  for (const { messageId = 0 } of received) app.send({ cmd: 'puback', messageId })
  await app.settled()

  const fresh = await connect(t, hub, former.subscriber)
  await fresh.client.subscribeAsync('radio/#', { qos: 1 })
  await fresh.received.count(9)
  t.same(
    fresh.received.all.map(({ payload }) => nameIn(payload)).sort(),
    ['once', ...Array(7).fill('shared later'), 'track 2'],
    'new subscribers get the newest of each topic',
  )
  const twice = await persistent(t, hub, 'twice', former.publisher)
  const event = control(livestreamOf(former), { name: 'once' })
  const payload = JSON.stringify(event)
  const topic = `inbox/${former.institution}`
  twice.send({ cmd: 'publish', topic, qos: 2, messageId: 7, dup: true, retain: false, payload })
  await twice.next('pubrec')
  twice.send({ cmd: 'pubrel', messageId: 7 })
  await twice.next('pubcomp')

  const reports = await persistent(t, hub, 'reports', former.publisher)
  await reports.next('publish', 1)
  const publisher = await connectPublisher(t, hub, former.publisher, former.institution)
  await publisher.publish(control(livestreamOf(former), { name: 'new' }))
  const live = await app.next('publish', owed.length)
  t.equal(nameIn(live.payload), 'new', 'what is new comes behind it, and what came twice came once')
  app.send({ cmd: 'puback', messageId: live.messageId ?? 0 })
  await app.settled()
  await hub.close()

  const before = await dump(settings, home)
  const old = /^(body|queue|retained-body|work-body|take-over)\//
  t.same(
    [...before.keys()].filter((key) => old.test(key)),
    [],
    'nothing is left of the former form',
  )
  const second = await startTestHub(t, settings, home)
  t.notOk(said(second, 'the store of the former release is taken over'))
  await second.close()
  const after = await dump(settings, home)
  // Each start tries the webhooks, which changes the records below `work/`.
  for (const content of [before, after])
    for (const key of content.keys()) if (key.startsWith('work/')) content.delete(key)
  t.same(after, before, 'the next start changes nothing')
})

onEachStore('what waited for webhooks and plugin targets is delivered', async (t, settings, driver) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  receiver.behave(() => 500)
  const former = withWorkFor(readFormerStore(driver), receiver.url(''))
  await fill(t, settings, home, former)
  const config = join(home, 'hub.json')
  await writeFile(config, JSON.stringify({ plugins: [{ type: 'dts', url: receiver.url('/dts') }] }))
  const env = { ...settings, ...pushing(receiver), HUB_CONFIG: config }
  const first = await startTestHub(t, env, home)
  // After this, the hub has tried an item of each queue: these items have the new format.
  await receiver.until((received) => new Set(received.map(({ path }) => path)).size === 3)
  await first.close()

  const tried = receiver.received.length
  receiver.behave(() => 201)
  const hub = await startTestHub(t, env, home)
  await receiver.until((received) => received.length >= tried + 11)
  t.match(await hub.ask('queues.replay', { name: 'plugins.dts' }), { replayed: 1 })
  await receiver.until((received) => received.length >= tried + 12)
  const titles = (path: string) =>
    receiver.received
      .slice(tried)
      .filter((received) => received.path === path)
      .map(({ event }) => event.title ?? nameIn(JSON.stringify(event.event)))
  for (const path of ['/one', '/two'])
    t.same(titles(path), ['given up 1', 'given up 2', 'waiting 1', 'waiting 2'])
  t.same(titles('/dts'), ['waiting 1', 'waiting 2', 'given up 2', 'given up 1'])
  await hub.until(async () =>
    (await hub.ask<{ pending: number }[]>('queues.list')).every((q) => q.pending === 0),
  )
  await hub.close()
  const left = [...(await dump(settings, home)).keys()].filter((key) => /^work/.test(key))
  t.same(left, [], 'and nothing is left of it')
})

onEachStore('a store that a newer release has written is refused', async (t, settings) => {
  const home = await temporaryDirectory(t)
  await mkdir(join(home, 'data'))
  const store = await openStoreOf(settings, join(home, 'data'))
  await store.commit([{ put: formatKey, value: '3' }])
  await store.close()
  await t.rejects(startTestHub(t, settings, home), /a newer release has written the store: it has format 3/)
})

t.test('a crash at any point changes nothing about the outcome', async (t) => {
  const former = readFormerStore('embedded')
  const whole = await taken(t, former, Infinity)
  t.ok(whole.commits > 10)
  const shared = [...whole.content.values()].filter((value) => value.includes('"sharedWith"'))
  t.equal(shared.length, 6, 'a payload that seven retained values have in common is stored once')
  for (let commits = 0; commits < whole.commits; commits++) {
    const interrupted = await taken(t, former, commits)
    t.same(interrupted.content, whole.content, `after ${commits} commits`)
  }
})

t.test('what cannot be taken over as it was', async (t) => {
  const store = await openEmbeddedStore(join(await temporaryDirectory(t), 'store'))
  t.teardown(() => store.close())
  const session = { clientId: 'a', clean: false, permission: '', principal: {}, createdAt: 1, version: 5 }
  await store.commit([{ put: 'session/a', value: JSON.stringify({ ...session, subscriptions: [['#', 2]] }) }])
  const entry = { topic: 't', keep: 'every', time: 0, retain: false, released: false, session: 1 }
  const queue = [
    { ...entry, sequence: 1, qos: 2, packetId: 1 },
    { ...entry, sequence: 2, qos: 2, packetId: 2, released: true },
    { ...entry, sequence: 3, qos: 1, session: 0 },
    { ...entry, sequence: 4, qos: 1 },
    { ...entry, sequence: 5, qos: 1, packetId: 5 },
  ]
  for (const each of queue) {
    const number = String(each.sequence).padStart(16, '0')
    await store.commit([{ put: `queue/a/${number}`, value: JSON.stringify(each) }])
    if (each.sequence !== 4)
      await store.commit([{ put: `body/${number}`, value: `{"topic":"t"}\n${number}` }])
  }
  await createTakeOver(formerWork)(store, log)
  const record = JSON.parse(String(await store.get('session/a')))
  t.same(record.subscriptions, [['#', 2, 0]])
  t.equal(record.upTo, 4)
  t.same(
    record.owed,
    [
      [1, 2, 0],
      [4, 1, 2],
    ],
    'QoS 2 is sent anew, what is released, of another session or without payload is not',
  )
})

/** Converts a former store, first with a crash after `commits` commits, then to the end. */
async function taken(t: Test, former: FormerStore, commits: number) {
  const directory = await temporaryDirectory(t)
  await fillDirectory(directory, former)
  const store = await openEmbeddedStore(join(directory, 'store'))
  let left = commits
  const failing: Store = {
    ...store,
    commit: (changes) => (left-- > 0 ? store.commit(changes) : Promise.reject(new Error('crash'))),
  }
  const takeOver = createTakeOver(formerWork, { changes: 8, bytes: 10_000 })
  if (commits < Infinity) await t.rejects(takeOver(failing, log), /crash/)
  let count = 0
  await takeOver({ ...store, commit: (changes) => store.commit(changes).finally(() => count++) }, log)
  const content = new Map<string, string>()
  for (const prefix of prefixes) {
    for await (const [key, value] of store.range(prefix)) content.set(key, value.toString())
  }
  await store.close()
  return { commits: count, content }
}

const prefixes = [
  'journal/',
  'latest/',
  'every/',
  'retained/',
  'session/',
  'incoming/',
  'body/',
  'queue/',
  'retained-body/',
  'work/',
  'work-dead/',
  'work-body/',
  'take-over/',
]

async function dump(settings: StoreSettings, home: string): Promise<Map<string, string>> {
  const store = await openStoreOf(settings, join(home, 'data'))
  const content = new Map<string, string>()
  for (const prefix of prefixes) {
    for await (const [key, value] of store.range(prefix)) content.set(key, value.toString())
  }
  await store.close()
  return content
}

async function fill(t: Test, settings: StoreSettings, home: string, former: FormerStore): Promise<void> {
  const url = settings.HUB_REDIS_URL
  if (url === undefined) return fillDirectory(join(home, 'data'), former)
  const client = new Redis(url)
  t.teardown(() => client.disconnect())
  await fillRedis(client, former)
}

async function persistent(t: Test, hub: TestHub, clientId: string, { username, password }: Issued) {
  const client = await rawClient(t, hub.mqttPort, readFileSync(hub.caPath))
  const { sessionPresent } = await client.connect({
    clientId,
    clean: false,
    username,
    password: Buffer.from(password),
  })
  t.ok(sessionPresent, `the session of ${clientId} is there`)
  return client
}

function nameIn(payload: string | Buffer): string {
  const { title, name } = JSON.parse(String(payload))
  return title ?? name
}

function livestreamOf({ livestream }: FormerStore) {
  const found = stations.flat().find(({ id }) => id === livestream)
  if (!found) throw new Error(`the sample feed has no livestream ${livestream}`)
  return found
}

function said({ lines }: TestHub, text: string): boolean {
  return lines.some(({ msg }) => msg === text)
}
