import { readFileSync } from 'node:fs'
import type { IPublishPacket } from 'mqtt-packet'
import t, { type Test } from 'tap'
import { closed, connect, connectPublisher } from '../../clients.ts'
import { control, controlTopic, institutions, station } from '../../events.ts'
import type { FleetNode } from '../../nodes/fleet.ts'
import { startHeldFleet } from '../../nodes/held-fleet.ts'
import { rawClient } from '../../raw-client.ts'
import { withoutRedis } from '../../redis-server.ts'
import type { Issued } from '../../start-hub.ts'
import { until } from '../../until.ts'

/*
 * Two nodes act at the same moment. The clock of node `a` is ahead, so ordering by clocks would fail.
 */

const [own = ''] = institutions

/** A client that acknowledges nothing by itself. */
async function raw(t: Test, node: FleetNode, { username, password }: Issued, fields: object = {}) {
  const client = await rawClient(t, node.mqttPort, readFileSync(node.caPath))
  await client.connect({ username, password: Buffer.from(password), clean: false, ...fields })
  return client
}

let lastId = 0
function publishOf(index: number, name: string): IPublishPacket {
  return {
    cmd: 'publish',
    topic: `inbox/${own}`,
    qos: 1,
    messageId: ++lastId,
    retain: false,
    dup: false,
    payload: JSON.stringify(control(station(0, index), { name })),
  }
}

function namesOf(packets: readonly IPublishPacket[]): string[] {
  return packets.map(({ payload }) => JSON.parse(String(payload)).name)
}

t.test('two nodes at the same moment', { skip: withoutRedis }, async (t) => {
  const { a, b, c, hold, release, subscriber, publisher } = await startHeldFleet(t, {
    institution: own,
    ahead: (index) => (index === 0 ? 5_000 : 0),
  })

  t.test('a client id that others have by now is not taken from them', async (t) => {
    const stranger = await b.subscriber('radio/+/control')
    await Promise.all([a.knows(3), c.knows(3)])
    const first = await raw(t, b, subscriber, { clientId: 'moved', clean: true })
    await until(async () => (await a.connected('moved'))?.connected === true)
    const bystander = await raw(t, a, subscriber, { clientId: 'bystander' })
    hold()
    first.send({ cmd: 'disconnect' })
    await first.closed()
    const owner = await raw(t, b, stranger, { clientId: 'moved', clean: true })
    // Node a still believes that the first client has this client id.
    const second = await rawClient(t, a.mqttPort, readFileSync(a.caPath))
    const { username, password } = subscriber
    const answer = second.connect({ username, password: Buffer.from(password), clientId: 'moved' })
    // The log-in takes several turns of node a's event loop before it waits for the store. Each answer is a later turn.
    for (let turn = 0; turn < 20; turn++) await bystander.settled()
    release()
    t.equal((await answer).returnCode, 2)
    await owner.settled()
    t.pass('the owner is still connected')
  })

  t.test('who subscribes on one node gets what another is storing without knowing of it', async (t) => {
    const topic = controlTopic(station(0, 0))
    const awake = await connect(t, b, subscriber, { clientId: 'awake', clean: false })
    const asleep = await connect(t, b, subscriber, { clientId: 'asleep', clean: false })
    const studio = await raw(t, a, publisher, { clientId: 'studio' })
    hold()
    await awake.client.subscribeAsync(topic, { qos: 1 })
    await asleep.client.subscribeAsync(topic, { qos: 1 })
    await asleep.client.endAsync()
    studio.send(publishOf(0, 'late'))
    // After this, node a has chosen the recipients without the new subscriptions.
    await studio.settled()
    release()
    await studio.next('puback')
    t.equal((await awake.received.until(() => true)).json.name, 'late')
    const again = await connect(t, c, subscriber, { clientId: 'asleep', clean: false })
    t.equal((await again.received.until(() => true)).json.name, 'late')
    await studio.settled()
    t.same([awake.received.all.length, again.received.all.length], [1, 1], 'once')
    for (const { client } of [awake, again]) await client.endAsync()
  })

  t.test('two nodes that send two messages to a session at once', async (t) => {
    const login = { clientId: 'moves' }
    const topic = controlTopic(station(0, 1))
    const before = await raw(t, a, subscriber, login)
    before.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic, qos: 1 }] })
    await before.next('suback')
    const studios = {
      a: await raw(t, a, publisher, { clientId: 'studio-a' }),
      b: await raw(t, b, publisher, { clientId: 'studio-b' }),
    }
    await until(async () => (await b.connected('moves'))?.connected === true)
    hold()
    studios.a.send(publishOf(1, 'sent by a'))
    await studios.a.settled()
    // Node b takes over the session although node a cannot answer.
    const moved = await raw(t, b, subscriber, login)
    studios.b.send(publishOf(1, 'sent by b'))
    await moved.next('publish')
    release()
    await moved.next('publish', 1)
    await before.closed()
    const publishes = moved.packets.filter((packet) => packet.cmd === 'publish')
    t.same(namesOf(publishes), ['sent by b', 'sent by a'])
    t.equal(new Set(publishes.map(({ messageId }) => messageId)).size, 2)

    const again = await raw(t, c, subscriber, login)
    await again.next('publish', 1)
    const idOf = (name: string) => publishes[namesOf(publishes).indexOf(name)]?.messageId
    for (const packet of again.packets.filter((packet) => packet.cmd === 'publish')) {
      const [name = ''] = namesOf([packet])
      t.match(packet, { dup: true, messageId: idOf(name) }, `${name} comes again as what it is`)
      again.send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
    }
    for (const node of [a, b, c]) {
      await until(async () => {
        const sessions = await node.ask<{ clientId: string; queued: number }[]>('sessions.list')
        return sessions.find(({ clientId }) => clientId === 'moves')?.queued === 0
      })
    }
    again.send({ cmd: 'disconnect' })
  })

  t.test('of two nodes that both have a client the one of the later log-in is right', async (t) => {
    const login = { clientId: 'twice', clean: false }
    const before = await connect(t, a, subscriber, login)
    await before.client.subscribeAsync(controlTopic(station(0, 2)), { qos: 1 })
    await until(async () => (await b.connected('twice'))?.connected === true)
    const gone = closed(before.client)
    hold()
    // `hold` delays this SUBSCRIBE: node a stores it after the client has logged in on node b. The session record that
    // node a then stores still names node a.
    before.client.subscribe(controlTopic(station(0, 3)), { qos: 1 })
    const after = await connect(t, b, subscriber, login)
    t.ok(before.client.connected, 'it does not know yet')
    release()
    await gone
    for (const node of [a, b, c]) {
      await until(async () => (await node.connected('twice'))?.node?.endsWith(b.name) === true)
    }
    const studio = await connectPublisher(t, a, publisher, own)
    await studio.publish(control(station(0, 2), { name: 'where it is' }))
    t.equal((await after.received.until(() => true)).json.name, 'where it is')
    t.ok(after.client.connected)
  })
})
