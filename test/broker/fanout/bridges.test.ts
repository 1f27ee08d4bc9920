import { setImmediate as nextTurn } from 'node:timers/promises'
import type { IPublishPacket } from 'mqtt-packet'
import type { Test } from 'tap'
import t from 'tap'
import { createBridges } from '../../../broker/fanout/bridges.ts'
import type { Session } from '../../../broker/session/session.ts'
import type { Message } from '../../../event/message.ts'
import type { RetainedMessages } from '../../../journal/retained.ts'
import { openBroker, type Peer, peer, publishes, subscribe } from '../../conformance/peers.ts'
import type { PlainBroker } from '../../plain-broker.ts'
import { acknowledgeAll, leave, openHub, title } from '../session/crashing-hub.ts'

const control = 'radio/x/control'

/** A control state. `time`: its event time, milliseconds since the epoch. */
function state(payload: string, time: number, expires: number): Message {
  return {
    topic: control,
    stream: 'x',
    payload: Buffer.from(payload),
    qos: 1,
    retained: { slot: payload, time, expires },
    queue: { keep: 'every', time, expires },
  }
}

/** A client that connects as a mosquitto bridge does (protocol level 0x84), and subscribes to `radio/#`. */
async function bridge(t: Test, broker: PlainBroker, clean: boolean, qos: 0 | 1 = 1): Promise<Peer> {
  const client = await peer(t, broker, `bridge-${clean}-${qos}`, { clean, bridgeMode: true })
  acknowledgeAll(client)
  subscribe(client, 1, { 'radio/#': qos })
  await client.next('suback')
  return client
}

/** Resolves when `client` has this many messages more than before. Each as text, with `*` if RETAIN is 1. */
async function texts(client: Peer, count: number): Promise<string[]> {
  await client.next('publish', count - 1)
  await client.settled()
  return publishes(client).map(text)
}

const text = ({ payload, retain }: IPublishPacket) => `${payload}${retain ? '*' : ''}`

for (const [clean, qos] of [
  [true, 0],
  [true, 1],
  [false, 1],
  [false, 0],
] as const) {
  const what = `${clean ? 'clean' : 'persistent'} session, QoS ${qos}`

  t.test(`to a bridge RETAIN says whether a live message is the retained value: ${what}`, async (t) => {
    const broker = await openBroker(t)
    const client = await bridge(t, broker, clean, qos)
    const other = await peer(t, broker, 'other')
    subscribe(other, 1, { 'radio/#': 0 })
    await other.next('suback')
    await broker.broker.distribute([title('first', 10)])
    await broker.broker.distribute([title('late', 5)])
    await broker.broker.distribute([title('newest', 20)])
    t.same(await texts(client, 3), ['first*', 'late', 'newest*'])
    t.same(await texts(other, 3), ['first', 'late', 'newest'], 'RETAIN is 0 for others [MQTT-3.3.1-9]')
  })

  t.test(`a bridge is told of a value that ends or is replaced without a message: ${what}`, async (t) => {
    const clock = { now: Date.now() }
    const start = clock.now
    const broker = await openBroker(t, { clock: () => clock.now })
    const client = await bridge(t, broker, clean, qos)
    await broker.broker.distribute([state('long', start, start + 600_000)])
    await broker.broker.distribute([state('short', start + 1, start + 60_000)])
    t.same(await texts(client, 2), ['long*', 'short*'])
    clock.now += 60_001
    t.same(await texts(client, 3), ['long*', 'short*', 'long*'], 'the next newest takes its place')
    clock.now += 600_000
    t.same((await texts(client, 4)).at(-1), '*', 'and then nothing')
    await broker.broker.distribute([title('title', 1)])
    await client.next('publish', 4)
    await broker.broker.retained.clear('radio/x/track')
    t.same((await texts(client, 6)).slice(-2), ['title*', '*'], 'an operator has cleared it')
  })
}

t.test('what ends at the same moment on many topics is told in several turns', async (t) => {
  let hasChanged = (_: string) => {}
  const onSilentChange = (listener: typeof hasChanged) => {
    hasChanged = listener
  }
  const retained = { onSilentChange, current: () => undefined, expiring: new Set() } as unknown
  const bridges = createBridges({
    retained: retained as RetainedMessages,
    mayReceive: () => true,
    sent: async () => undefined,
  })
  let [total, inTurn, most] = [0, 0, 0]
  const send = () => {
    total++
    most = Math.max(most, ++inTurn)
  }
  const session = { connection: { isOpen: true, send }, subscriptions: new Map([['radio/#', {}]]) } as unknown
  bridges.enter(session as Session)
  for (let nth = 0; nth < 500; nth++) hasChanged(`radio/${nth}/control`)
  while (total < 500) {
    inTurn = 0
    await nextTurn()
  }
  t.ok(most <= 2 * 50, `${most} messages in one turn`)
})

t.test('a bridge that comes back learns what has ended meanwhile, also after a restart', async (t) => {
  const clock = { now: Date.now() }
  const start = clock.now
  const { start: startNode, crash } = openHub(t)
  const options = { clock: () => clock.now }
  const broker = await startNode(options)
  await leave(await bridge(t, broker, false))
  await broker.broker.distribute([title('first', 1), state('state', start, start + 60_000)])
  await broker.broker.distribute([title('newest', 2)])
  const again = await bridge(t, broker, false)
  const seen = await texts(again, 2)
  t.same([...new Set(seen)].sort(), ['newest*', 'state*'], 'what it missed is what is retained')
  await leave(again)
  clock.now += 60_001
  await broker.broker.retained.clear('radio/x/track')
  await broker.broker.retained.sweep()
  crash()
  const after = await startNode(options)
  const last = await bridge(t, after, false)
  await last.next('publish', 1)
  await last.settled()
  const ended = publishes(last).filter(({ payload }) => payload.length === 0)
  t.same(ended.map(({ topic, retain }) => `${topic} ${retain}`).sort(), [
    `${control} true`,
    'radio/x/track true',
  ])
  t.ok(publishes(last).every(({ payload, retain }) => payload.length === 0 || !retain))
})
