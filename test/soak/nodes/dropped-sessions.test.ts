import { readFileSync } from 'node:fs'
import pino from 'pino'
import t, { type Test } from 'tap'
import type { Principal } from '../../../acl/principal.ts'
import type { MqttConnection } from '../../../broker/connection/connection.ts'
import { preparePublish } from '../../../broker/connection/wire.ts'
import { openOutbox } from '../../../broker/queue/outbox.ts'
import { openHubTime } from '../../../broker/session/hub-time.ts'
import { followSessions } from '../../../broker/session/replica.ts'
import type { Session } from '../../../broker/session/session.ts'
import { openSessions } from '../../../broker/session/sessions.ts'
import { createSubscriptions } from '../../../broker/session/subscriptions.ts'
import { createOnlyNode, type Nodes } from '../../../store/nodes/nodes.ts'
import { createSequences } from '../../../store/nodes/sequences.ts'
import { ConditionFailed } from '../../../store/store.ts'
import { createMetrics } from '../../../telemetry/metrics.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { control, controlTopic, institutions, station } from '../../events.ts'
import { until } from '../../nodes/fleet.ts'
import { startHeldFleet } from '../../nodes/held-fleet.ts'
import { rawClient } from '../../raw-client.ts'
import { withoutRedis } from '../../redis-server.ts'
import { createSharedSpace, settled } from '../../shared-store.ts'
import { entries } from '../../store/open-redis.ts'

/* A session is dropped on one node while another, which has not heard of it yet, queues a message for it. */

const [own = ''] = institutions

t.test('a message queued for a session that is gone goes with it', { skip: withoutRedis }, async (t) => {
  const { a, b, c, hold, release, subscriber, publisher } = await startHeldFleet(t, { institution: own })
  const login = { clientId: 'gone', clean: false }
  const asleep = await connect(t, b, subscriber, login)
  await asleep.client.subscribeAsync(controlTopic(station(0, 0)), { qos: 1 })
  await asleep.client.endAsync()
  await until(async () => (await a.connected('gone'))?.connected === false)
  const studio = await rawClient(t, a.mqttPort, readFileSync(a.caPath))
  const { username, password } = publisher
  await studio.connect({ username, password: Buffer.from(password), clientId: 'studio' })
  hold()
  studio.send({
    ...{ cmd: 'publish', topic: `inbox/${own}`, qos: 1, messageId: 1, retain: false, dup: false },
    payload: JSON.stringify(control(station(0, 0), { name: 'for the one before' })),
  })
  await studio.settled()
  await b.ask('sessions.drop', { clientId: 'gone' })
  release()
  await studio.next('puback')

  t.test('the next session of that name does not get it', async (t) => {
    for (const node of [b, c]) {
      const next = await connect(t, node, subscriber, login)
      await next.client.subscribeAsync(controlTopic(station(0, 1)), { qos: 1 })
      const other = await connectPublisher(t, a, publisher, own)
      await other.publish(control(station(0, 1), { name: 'for the one after' }))
      await next.received.until(({ json }) => json.name === 'for the one after')
      const names = next.received.all.map(({ json }) => json.name)
      t.notOk(names.includes('for the one before'), `not at node ${node.index}`)
      await next.client.endAsync()
      await other.client.endAsync()
    }
  })
})

const player: Principal = { role: 'subscriber', username: 'player', filters: ['#'] }
const message = { topic: 'a', payload: Buffer.from('x'), qos: 1, queue: { keep: 'every' } } as const

/** What nodes know of sessions and queues, without clients. The first node leads. */
async function openNodes(t: Test, count: number) {
  const space = createSharedSpace()
  const metrics = createMetrics()
  const log = pino({ level: 'silent' })
  return Promise.all(
    Array.from({ length: count }, async (_, slot) => {
      const store = space.openWatched(t)
      const nodes: Nodes = {
        ...createOnlyNode('n'),
        self: `${slot}`,
        isShared: true,
        isLiving: () => true,
        slotOf: Number,
        isLeader: () => slot === 0,
      }
      const routes = { stored: createSubscriptions<Session>(), live: createSubscriptions<Session>() }
      const sequences = createSequences(Date.now, () => slot)
      const outbox = await openOutbox({
        ...{ store, clock: Date.now, sequences, queueLimit: 100, log, metrics },
        mayReceive: () => true,
      })
      const monotonic = () => performance.now()
      const hubTime = await openHubTime({ store, log, clock: Date.now, monotonic })
      const sessions = await openSessions({
        ...{
          store,
          outbox,
          nodes,
          sequences,
          hubTime,
          clock: Date.now,
          expiryMs: 3_600_000,
          maxPerCredential: 1_000,
          mayHave: () => true,
        },
        routes: { ...routes, grantedElsewhere: 0, removedElsewhere: 0 },
      })
      followSessions({ store, sessions, outbox, nodes, log })
      store.start()
      const session = () => {
        const found = sessions.get('gone')
        if (!found) throw new Error('no session')
        return found
      }
      /** As an event is queued. */
      const queue = async () => {
        const sequence = outbox.nextSequence()
        const taken = outbox.plan(session(), message, sequence, 1, false)
        if (!taken) throw new Error('not queued')
        await store.commit([...taken.changes, outbox.bodyChange(sequence, message)])
        outbox.sendPlanned(taken.planned, preparePublish(message.topic, message.payload))
      }
      return { store, sessions, outbox, session, queue }
    }),
  )
}

t.test('a session that is dropped while its record is being stored is gone', async (t) => {
  const [node, other] = await openNodes(t, 2)
  if (!node || !other) return
  const owner = {} as MqttConnection
  const { session } = await node.sessions.claim('gone', false, player, owner)
  node.sessions.subscribe(session, message.topic, 1)
  const leaving = node.sessions.release(session, owner)
  await node.sessions.drop(session)
  await leaving
  await settled(node.store, other.store)
  t.equal(await node.store.get('session/gone'), undefined)
  for (const { sessions } of [node, other]) t.equal(sessions.get('gone'), undefined)
})

t.test('a session that a client has on another node by now is not dropped', async (t) => {
  const [node, other] = await openNodes(t, 2)
  if (!node || !other) return
  const { session } = await node.sessions.claim('taken', false, player, {} as MqttConnection)
  await settled(node.store, other.store)
  const claimed = other.sessions.claim('taken', false, player, {} as MqttConnection)
  await t.rejects(node.sessions.drop(session), ConditionFailed)
  t.match(await claimed, { resumed: true })
  await settled(node.store, other.store)
  t.ok(await other.store.get('session/taken'))
  for (const { sessions } of [node, other]) t.ok(sessions.get('taken'))
})

t.test(
  'of a session that is dropped while messages are queued for it nothing stays in the store',
  async (t) => {
    for (const first of ['drop', 'queue'] as const) {
      for (const writer of [0, 1, 2]) {
        const [a, b, c] = await openNodes(t, 3)
        const nodes = [a, b, c].filter((node) => node !== undefined)
        const [node, other] = [nodes[writer], nodes[(writer + 1) % 3]]
        if (!node || !other) throw new Error('three nodes')
        const owner = {} as MqttConnection
        const { session } = await other.sessions.claim('gone', false, player, owner)
        other.sessions.subscribe(session, message.topic, 1)
        await other.sessions.storeSubscriptions(session)
        await settled(...nodes.map(({ store }) => store))
        await node.queue()
        await other.sessions.release(session, owner)
        await settled(...nodes.map(({ store }) => store))
        const steps = [() => other.sessions.drop(other.session()), () => node.queue()]
        await Promise.all((first === 'drop' ? steps : steps.reverse()).map((step) => step()))
        await settled(...nodes.map(({ store }) => store))
        for (const { sessions } of nodes) await sessions.sweep()
        await settled(...nodes.map(({ store }) => store))
        const left = [...(await entries(node.store, 'queue/')), ...(await entries(node.store, 'body/'))]
        t.same(left, [], `${first} first, queued by node ${writer}`)
        for (const { outbox } of nodes) t.same(outbox.abandonedChanges(), [], 'and all nodes know it')
      }
    }
  },
)

t.test(
  'what is being sent while a clean session takes over elsewhere leaves nothing in the store',
  async (t) => {
    const [a, b] = await openNodes(t, 2)
    if (!a || !b) throw new Error('two nodes')
    const heard = () => settled(a.store, b.store)
    const owner = { isOpen: true, paced: async () => {}, deliver() {}, cut() {} } as unknown as MqttConnection
    const { session } = await a.sessions.claim('gone', false, player, owner)
    a.sessions.subscribe(session, message.topic, 1)
    await a.sessions.storeSubscriptions(session)
    await heard()
    // By the other node, so that this one has the bodies at hand, and sends before it hears of the take-over.
    for (const _ of [1, 2]) await b.queue()
    await heard()
    session.connection = owner
    const other = {} as MqttConnection
    await Promise.all([b.sessions.claim('gone', true, player, other), a.outbox.connected(session)])
    await heard()
    t.equal(session.connection, undefined, 'it was taken over')
    await a.outbox.close()
    for (const { sessions } of [a, b]) await sessions.sweep()
    await heard()
    t.same([...(await entries(a.store, 'queue/')), ...(await entries(a.store, 'body/'))], [])
    t.same(b.outbox.abandonedChanges(), [])
  },
)
