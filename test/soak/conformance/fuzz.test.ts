import { generate } from 'mqtt-packet'
import t from 'tap'
import { collectGarbage } from '../../collect-garbage.ts'
import { openBroker, type Peer, peer, publish, publishes, subscriber } from '../../conformance/peers.ts'
import { createRandom } from '../../random.ts'
import { rawClient } from '../../raw-client.ts'

/*
 * Many clients send hostile bytes, which follow from FUZZ_SEED. FUZZ_PACKETS=100000 runs the full test.
 */
const total = Number(process.env.FUZZ_PACKETS ?? 20_000)
const random = createRandom(process.env.FUZZ_SEED ?? '1')

const connect = (clientId: string, clean = true): Buffer =>
  generate({ cmd: 'connect', protocolId: 'MQTT', protocolVersion: 4, clean, clientId, keepalive: 0 })

/** Makers of valid packets, which the mutations then damage. */
const valid: (() => Buffer)[] = [
  () => connect(pick(['', 'c', '__proto__', 'ä', 'x'.repeat(300)])),
  () => generate(publish(pick(['a', 'a/b', '$SYS/x', 'ü/'.repeat(50)]), 0)),
  () => generate(publish('a/b', 1, between(1, 65_535), { payload: 'x'.repeat(between(0, 2000)) })),
  () => generate(publish('a', 2, between(1, 50), { retain: chance(0.5), dup: chance(0.5) })),
  () => generate({ cmd: 'pubrel', messageId: between(1, 50) }),
  () => generate({ cmd: pick(['puback', 'pubrec', 'pubcomp'] as const), messageId: between(1, 50) }),
  () =>
    generate({
      cmd: 'subscribe',
      messageId: between(1, 65_535),
      subscriptions: Array.from({ length: between(1, 9) }, () => ({
        topic: pick(['a', '#', '+/b', 'a/#', '$SYS/#', 'a+', '/', '//']),
        qos: pick([0, 1, 2] as const),
      })),
    }),
  () => generate({ cmd: 'unsubscribe', messageId: between(1, 9), unsubscriptions: [pick(['a', '#', 'x'])] }),
  () => generate({ cmd: 'pingreq' }),
  () => generate({ cmd: 'disconnect' }),
]

/**
 * `rawClient` gets this object instead of the test. The test would keep thousands of teardowns, which would look like a
 * leak.
 */
const forgotten = { teardown: () => {} }

/** Ways to damage a packet. The first leaves it valid. */
const mutations: ((bytes: Buffer) => Buffer)[] = [
  (bytes) => bytes,
  (bytes) => flip(bytes, 1),
  (bytes) => flip(bytes, between(2, 12)),
  (bytes) => bytes.subarray(0, between(0, bytes.length)),
  (bytes) => Buffer.concat([bytes, noise(between(1, 40))]),
  (bytes) => Buffer.concat([bytes.subarray(0, 2), noise(between(0, 20)), bytes.subarray(2)]),
  (bytes) => Buffer.concat([Buffer.of(bytes[0] ?? 0, 0xff, 0xff, 0xff, between(0, 255)), bytes.subarray(2)]),
  (bytes) => noise(bytes.length),
]

t.test(`${total} packets of noise crash nothing and disturb nobody`, async (t) => {
  // Short queues are full early: memory that grows later is a leak.
  const broker = await openBroker(t, { limits: { connectTimeoutMs: 2000, queueLimit: 100 } })
  const healthy = await subscriber(t, broker, 'healthy', { 'healthy/#': 1 }, { clean: false })
  const publisher = await peer(t, broker, 'publisher')
  const problems: unknown[] = []
  let sent = 0
  let delivered = 0
  let warm = 0
  const perClient = 25
  while (sent < total) {
    const attackers = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const client = await rawClient(forgotten, broker.port)
        // Most attackers send a CONNECT first. Without one, the broker would read no other packet.
        if (chance(0.9)) client.send(connect(`f${between(0, 20)}`, chance(0.5)))
        return client
      }),
    )
    for (const client of attackers) attack(client, perClient)
    sent += attackers.length * perClient
    publisher.send(publish(`healthy/${delivered}`, 1, 1 + (delivered % 60_000)))
    const { topic, messageId = 0 } = await healthy.next('publish')
    if (topic !== `healthy/${delivered}`) t.fail(`${topic} instead of healthy/${delivered}`)
    healthy.send({ cmd: 'puback', messageId })
    healthy.packets.length = 0
    publisher.packets.length = 0
    delivered++
    problems.push(...broker.lines.splice(0).filter(({ level }) => Number(level) >= 50))
    // `end` instead of `destroy`, so that the broker still reads everything that was sent.
    for (const client of attackers) client.socket.end()
    await Promise.all(attackers.map((client) => client.closed()))
    if (sent >= total / 2 && warm === 0) warm = heapUsed()
  }
  await publisher.settled()
  const grown = (heapUsed() - warm) / 1024 / 1024
  t.ok(grown < 32, `the heap grew by ${grown.toFixed(1)} MiB in the second half`)
  t.same(problems, [], 'nothing in the log that is not the fault of a client')
})

t.test('packets dripped byte by byte are packets', async (t) => {
  const broker = await openBroker(t)
  const watcher = await subscriber(t, broker, 'w', { '#': 0 })
  const client = await rawClient(t, broker.port)
  const stream = Buffer.concat([
    connect('dripping'),
    generate(publish('a/b', 1, 1, { payload: 'x'.repeat(200) })),
    generate(publish('c', 2, 2)),
    generate({ cmd: 'pubrel', messageId: 2 }),
    generate({ cmd: 'pingreq' }),
  ])
  for (const byte of stream) {
    client.socket.write(Buffer.of(byte))
    await new Promise((resolve) => setImmediate(resolve))
  }
  await client.next('pingresp')
  await client.next('pubcomp')
  await watcher.settled()
  t.same(
    publishes(watcher).map(({ topic }) => topic),
    ['a/b', 'c'],
  )
})

t.test('a stream split at every byte gives the same answers', async (t) => {
  const broker = await openBroker(t)
  const stream = Buffer.concat([
    connect('split'),
    generate(publish('a', 1, 1)),
    generate({ cmd: 'subscribe', messageId: 2, subscriptions: [{ topic: 's', qos: 1 }] }),
    generate(publish('b', 2, 3)),
    generate({ cmd: 'unsubscribe', messageId: 4, unsubscriptions: ['s'] }),
    generate({ cmd: 'pingreq' }),
  ])
  for (let at = 1; at < stream.length; at++) {
    const client = await rawClient(t, broker.port)
    client.send(stream.subarray(0, at))
    await new Promise((resolve) => setImmediate(resolve))
    client.send(stream.subarray(at))
    await Promise.all(
      (['puback', 'suback', 'pubrec', 'unsuback', 'pingresp'] as const).map((cmd) => client.next(cmd)),
    )
    t.equal(client.packets.length, 6, `at ${at}`)
    client.socket.destroy()
  }
})

function attack(client: Peer, count: number): void {
  const packets = Array.from({ length: count }, () => pick(mutations)(pick(valid)()))
  if (chance(0.5)) {
    client.send(...packets)
    return
  }
  // Send in pieces that may end in the middle of a packet.
  const stream = Buffer.concat(packets)
  for (let at = 0; at < stream.length; ) {
    const end = at + between(1, 200)
    client.socket.write(stream.subarray(at, end))
    at = end
  }
}

function heapUsed(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

function flip(bytes: Buffer, count: number): Buffer {
  const copy = Buffer.from(bytes)
  for (let index = 0; index < count && copy.length > 0; index++)
    copy[between(0, copy.length - 1)] = between(0, 255)
  return copy
}

function noise(length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => between(0, 255)))
}

function chance(share: number): boolean {
  return random.happens(share)
}

function between(low: number, high: number): number {
  return low + random.below(high - low + 1)
}

function pick<Item>(items: readonly Item[]): Item {
  const item = items[between(0, items.length - 1)]
  if (item === undefined) throw new Error('nothing to pick from')
  return item
}
