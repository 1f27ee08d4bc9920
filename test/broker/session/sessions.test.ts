import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Principal } from '../../../acl/principal.ts'
import type { Store } from '../../../store/store.ts'
import {
  openBroker,
  type Peer,
  peer,
  publish,
  subscribe,
  subscriber,
  texts,
} from '../../conformance/peers.ts'
import { startPlainBroker } from '../../plain-broker.ts'
import { rawClient } from '../../raw-client.ts'

const hour = 3_600_000

/** Clocks that stand still until the test moves them. */
function clocks() {
  const time = { wall: Date.parse('2026-03-01T12:00:00Z'), passed: 0 }
  return {
    time,
    /** Moves both clocks by the same time, as real clocks should. */
    pass(ms: number): void {
      time.wall += ms
      time.passed += ms
    },
    sources: { clock: () => time.wall, monotonic: () => time.passed },
  }
}

async function leave(client: Peer, broker: Awaited<ReturnType<typeof startPlainBroker>>): Promise<void> {
  client.socket.destroy()
  await client.closed()
  while (broker.broker.connectionCount() > 0) await new Promise((resolve) => setImmediate(resolve))
}

t.test('a session whose time has run out is not resumed, swept up or not', async (t) => {
  const { pass, sources } = clocks()
  const broker = await openBroker(t, { ...sources, limits: { sessionExpiryMs: hour } })
  const publisher = await peer(t, broker, 'p')
  const first = await subscriber(t, broker, 'c', { a: 1 }, { clean: false })
  first.socket.destroy()
  await first.closed()
  while (broker.broker.sessions.get('c')) await new Promise((resolve) => setImmediate(resolve))
  publisher.send(publish('a', 1))
  await publisher.next('puback')

  pass(hour - 1)
  const inTime = await rawClient(t, broker.port)
  t.equal((await inTime.connect({ clientId: 'c', clean: false })).sessionPresent, true)
  await inTime.next('publish')
  inTime.socket.destroy()
  await inTime.closed()
  while (broker.broker.sessions.get('c')) await new Promise((resolve) => setImmediate(resolve))

  pass(hour)
  const late = await rawClient(t, broker.port)
  t.equal((await late.connect({ clientId: 'c', clean: false })).sessionPresent, false)
  publisher.send(publish('a', 1, 2))
  await publisher.next('puback', 1)
  await late.settled()
  t.same(texts(late), [], 'neither its queue nor its filters are there')
  t.equal(await broker.broker.sessions.sweep(), 0)
})

t.test('of sessions that run out together, a node removes a part at a time', async (t) => {
  const { pass, sources } = clocks()
  let underway = 0
  let removing = 0
  let most = 0
  const counting = (store: Store): Store => ({
    ...store,
    async commit(changes, begun) {
      // The node also stores other changes from time to time, such as its hub time.
      const removes = changes.some((change) => 'del' in change)
      underway++
      if (removes) most = Math.max(most, ++removing)
      try {
        return await store.commit(changes, begun)
      } finally {
        underway--
        if (removes) removing--
      }
    },
  })
  const broker = await openBroker(t, { ...sources, wrapStore: counting, limits: { sessionExpiryMs: hour } })
  const count = 250
  for (let index = 0; index < count; index++) {
    await leave(await peer(t, broker, `c${index}`, { clean: false }), broker)
  }
  while (underway > 0) await new Promise((resolve) => setImmediate(resolve))
  pass(hour)
  most = 0
  t.equal(await broker.broker.sessions.sweep(), count)
  t.equal(broker.broker.sessionCounts().away, 0)
  t.ok(most > 1 && most <= 100, `${most} at once`)
})

t.test('a client id whose session has run out is free for others', async (t) => {
  const { pass, sources } = clocks()
  const users: Record<string, Principal> = {
    a: { role: 'subscriber', username: 'a', filters: ['a'] },
    b: { role: 'subscriber', username: 'b', filters: ['b'] },
  }
  const access = { authenticate: (username: string) => users[username] }
  const broker = await openBroker(t, { ...sources, access, limits: { sessionExpiryMs: hour } })
  await leave(await peer(t, broker, 'c', { clean: false, username: 'a' }), broker)
  const connect = async () => {
    const client = await rawClient(t, broker.port)
    return client.connect({ clientId: 'c', clean: false, username: 'b' })
  }
  t.equal((await connect()).returnCode, 2)
  pass(hour)
  t.match(await connect(), { returnCode: 0, sessionPresent: false })
})

t.test('the time of a session goes on over restarts, and stands still while the hub is off', async (t) => {
  const directory = t.testdir()
  const { pass, time, sources } = clocks()
  const open = () => startPlainBroker({ ...sources, directory, limits: { sessionExpiryMs: hour } })
  let broker = await open()
  await leave(await subscriber(t, broker, 'c', { a: 1 }, { clean: false }), broker)
  pass(hour / 2)
  await broker.close()
  time.wall += 30 * 24 * hour
  time.passed = 17
  broker = await open()
  t.equal(await broker.broker.sessions.sweep(), 0, 'it was off for a month')
  pass(hour / 2 - 1)
  t.equal(await broker.broker.sessions.sweep(), 0)
  await broker.close()
  broker = await open()
  pass(2)
  const client = await rawClient(t, broker.port)
  t.equal((await client.connect({ clientId: 'c', clean: false })).sessionPresent, false)
  await broker.close()
})

t.test('a clock that jumps deletes no session, and the jump is logged', async (t) => {
  const { pass, time, sources } = clocks()
  const broker = await openBroker(t, { ...sources, limits: { sessionExpiryMs: hour } })
  await leave(await subscriber(t, broker, 'c', { a: 1 }, { clean: false }), broker)
  const jumps = () => broker.lines.filter(({ msg }) => msg === 'the clock has jumped')
  const { hubTime, sessions } = broker.broker
  pass(hour / 2)
  hubTime.checkClock()
  t.same(jumps(), [], 'time that passes is no jump')
  for (const jump of [10 * 365 * 24 * hour, -20 * 365 * 24 * hour]) {
    time.wall += jump
    hubTime.checkClock()
    t.match(jumps().at(-1), { level: 40, jumpSeconds: jump / 1000 })
    t.equal(await sessions.sweep(), 0)
    const [shown] = await broker.broker.sessionList()
    t.equal(Date.parse(shown?.expiresAt ?? '') - time.wall, hour / 2, 'its end is shown by the clock')
  }
  time.wall += 59_000
  hubTime.checkClock()
  t.equal(jumps().length, 2, 'a clock that is put right by less than a minute is none')
  const back = await rawClient(t, broker.port)
  t.equal((await back.connect({ clientId: 'c', clean: false })).sessionPresent, true)
  await leave(back, broker)
  pass(hour)
  t.equal(await sessions.sweep(), 1)
})

t.test('a clock that is set back while the hub is off is logged at its start', async (t) => {
  const directory = t.testdir()
  const { time, sources } = clocks()
  await (await startPlainBroker({ ...sources, directory })).close()
  time.wall -= hour
  const broker = await startPlainBroker({ ...sources, directory })
  t.match(
    broker.lines.find(({ msg }) => msg === 'the clock is behind that of the last run'),
    { jumpSeconds: -3_600 },
  )
  await broker.close()
})

t.test('persistent sessions of one credential are bounded', async (t) => {
  const directory = t.testdir()
  const filters = ['#']
  const users = ['a', 'b', 'rotated'].map((username) => ({ role: 'subscriber', username, filters }) as const)
  const access = { authenticate: (name: string) => users.find(({ username }) => username === name) }
  const { pass, sources } = clocks()
  const limits = { maxSessionsPerCredential: 2, sessionExpiryMs: hour }
  const open = () => startPlainBroker({ ...sources, access, directory, limits })
  let broker = await open()
  const connect = async (username: string, clientId: string, clean = false) => {
    const client = await rawClient(t, broker.port)
    const { returnCode } = await client.connect({ clientId, clean, username })
    return { client, returnCode }
  }
  const counted = (username: string) => broker.broker.known.persistentOf(username).size

  t.equal((await connect('a', '1')).returnCode, 0)
  const second = await connect('a', '2')
  const refused = await connect('a', '3')
  t.equal(refused.returnCode, 3)
  await refused.client.closed()
  t.equal((await connect('a', '3')).returnCode, 3)
  t.equal((await connect('a', 'clean', true)).returnCode, 0, 'clean sessions do not count')
  t.equal((await connect('b', '3')).returnCode, 0, 'nor do those of others')
  t.equal((await connect('a', '2')).returnCode, 0, 'what is there is resumed')
  await second.client.closed()
  const { values } = await broker.metrics.connectionsRefused.get()
  t.match(
    values.filter(({ value }) => value > 0),
    [{ labels: { reason: 'too-many-sessions' }, value: 2 }],
  )
  const lines = broker.lines.filter(({ msg }) => msg === 'too many persistent sessions of one credential')
  t.match(lines, [{ username: 'a', clientId: '3', sessions: 2 }], 'one line a minute')

  await broker.close()
  broker = await open()
  t.equal((await connect('a', '4')).returnCode, 3, 'after a restart')
  t.equal((await connect('a', '1')).returnCode, 0)

  t.equal((await connect('rotated', '2')).returnCode, 0)
  t.same([counted('a'), counted('rotated')], [1, 1], 'a session counts for who used it last')
  await connect('rotated', '2', true)
  t.same([counted('a'), counted('rotated')], [1, 0], 'a clean session takes its place')
  t.equal((await connect('a', '4')).returnCode, 0)
  t.equal((await connect('a', '5')).returnCode, 3)
  await broker.broker.dropSession('4')
  t.equal((await connect('a', '5')).returnCode, 0, 'one that is dropped makes room')
  await broker.broker.disconnect('5')
  await broker.broker.disconnect('1')
  while (['1', '5'].some((id) => broker.broker.sessions.get(id)))
    await new Promise((resolve) => setImmediate(resolve))
  pass(hour)
  t.equal((await connect('a', '6')).returnCode, 0, 'one that has expired makes room before it is swept up')
  t.equal(await broker.broker.sessions.sweep(), 3)
  t.same([counted('a'), counted('b')], [1, 0])
  await broker.close()
})

t.test('credentials with the same permissions do not pass sessions on beyond their bounds', async (t) => {
  const directory = t.testdir()
  const filters = ['#']
  const users = ['old', 'new'].map((username) => ({ role: 'subscriber', username, filters }) as const)
  const access = { authenticate: (name: string) => users.find(({ username }) => username === name) }
  const open = () => startPlainBroker({ access, directory, limits: { maxSessionsPerCredential: 2 } })
  let broker = await open()
  const connect = async (username: string, clientId: string) => {
    const client = await rawClient(t, broker.port)
    const answer = await client.connect({ clientId, clean: false, username })
    return { client, ...answer }
  }
  const counted = () => ['old', 'new'].map((name) => broker.broker.known.persistentOf(name).size)

  for (const clientId of ['1', '2']) await connect('old', clientId)
  t.match(await connect('new', '1'), { returnCode: 0, sessionPresent: true }, 'a rotated credential resumes')
  t.match(await connect('new', '2'), { returnCode: 0, sessionPresent: true })
  t.same(counted(), [0, 2])
  const third = await connect('old', '3')
  await connect('old', '4')
  t.equal((await connect('new', '3')).returnCode, 3, 'only so many')
  t.equal(broker.broker.sessions.get('3')?.principal.username, 'old')
  t.notOk(third.client.isClosed, 'and its client stays connected')
  t.same(counted(), [2, 2])

  await broker.close()
  broker = await open()
  t.equal((await connect('new', '3')).returnCode, 3, 'after a restart')
  t.match(await connect('new', '1'), { returnCode: 0, sessionPresent: true })
  await broker.broker.dropSession('2')
  t.match(await connect('new', '3'), { returnCode: 0, sessionPresent: true }, 'as soon as there is room')
  t.same(counted(), [1, 2])
  await broker.close()
})

t.test('a stored filter that is not permitted any more is forgotten when its client returns', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'sessions-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const before = await startPlainBroker({ directory })
  const client = await subscriber(
    t,
    before,
    'c',
    { 'radio/a': 1, 'radio/a/b': 1, 'x/y': 0 },
    { clean: false },
  )
  await leave(client, before)
  await before.close()

  const maySubscribe = (_principal: Principal, filter: string) =>
    filter.split('/').length < 3
      ? ({ allowed: true } as const)
      : ({ allowed: false, reason: 'too deep' } as const)
  const broker = await openBroker(t, { directory, access: { maySubscribe } })
  const publisher = await peer(t, broker, 'p')
  for (const [index, topic] of ['radio/a/b', 'radio/a'].entries())
    publisher.send(publish(topic, 1, index + 1))
  await publisher.next('puback', 1)
  const again = await peer(t, broker, 'c', { clean: false })
  await again.next('publish')
  t.same(texts(again), ['radio/a radio/a'])
  t.same([...(broker.broker.sessions.get('c')?.subscriptions.keys() ?? [])], ['radio/a', 'x/y'])
  t.match(
    broker.lines.filter(({ msg }) => msg === 'subscription denied'),
    [{ clientId: 'c', filter: 'radio/a/b', reason: 'too deep' }],
  )
})

t.test('denied filters without end have one line in the log', async (t) => {
  const reason = 'not permitted'
  const broker = await openBroker(t, { access: { maySubscribe: () => ({ allowed: false, reason }) } })
  const client = await peer(t, broker, 'c')
  for (let id = 1; id <= 1000; id++) subscribe(client, id, { x: 0 })
  await client.next('suback', 999)
  t.match(
    broker.lines.filter(({ msg }) => msg === 'subscription denied'),
    [{ filter: 'x', reason, denied: 1, times: 1 }],
  )
  t.match(String(await broker.metrics.exposition()), /hub_subscriptions_denied_total 1000/)
})
