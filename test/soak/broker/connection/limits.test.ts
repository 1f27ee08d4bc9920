import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import { generate } from 'mqtt-packet'
import t, { type Test } from 'tap'
import { connect, connectPublisher } from '../../../clients.ts'
import { collectGarbage } from '../../../collect-garbage.ts'
import { openBroker, type Peer, peer, publish } from '../../../conformance/peers.ts'
import { playing, serviceOf, station } from '../../../events.ts'
import { patienceMs } from '../../../patience.ts'
import type { PlainBroker } from '../../../plain-broker.ts'
import { connectPacket } from '../../../raw-client.ts'
import { stall } from '../../../stall.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'
import { comes } from '../../../until.ts'

t.test('of the events for many livestreams fewer go out in a second, over all connections', async (t) => {
  const home = await temporaryDirectory(t)
  const livestreams = Array.from({ length: 200 }, (_, index) => ({
    ...station(),
    id: `urn:org:permanent-livestream:${index}`,
    externalId: `crid://many.example/${index}`,
  }))
  const items = livestreams.map(({ publisher, institution, ...item }) => ({
    ...item,
    publisher: { ...publisher, institution },
  }))
  await writeFile(join(home, 'feed.json'), JSON.stringify({ items }))
  const hub = await startTestHub(t, { HUB_PUBLISH_RATE: '5', HUB_FEED: join(home, 'feed.json') }, home)
  const institution = station().institution.id
  const credential = await hub.publisher([institution])
  const [first, second] = [await connect(t, hub, credential), await connect(t, hub, credential)]
  const publish = ({ client }: Pick<typeof first, 'client'>, event: object) =>
    client.publishAsync(`inbox/${institution}`, JSON.stringify(event), { qos: 1 })
  const many = playing(station(), { services: livestreams.map(serviceOf) })
  const other = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const began = performance.now()
  await publish(first, many)
  let answered = 1
  const waiting = [first, second].map((publisher) => publish(publisher, many).then(() => answered++))
  await publish(other, playing(livestreams[0] ?? station()))
  t.ok(answered < 3, 'another credential is not held back')
  // After a stall there are tokens for both events. The cost of the first takes them away again.
  stall(1000)
  await Promise.all(waiting)
  t.ok(performance.now() - began > 1900, 'the bucket was filled again in between')
  await other.received.count(4)
  t.same(
    other.received.all.map(({ json }) => json.outcome),
    Array(4).fill('published'),
    'nothing is lost',
  )
})

t.test('above the rate publishing slows down, and nothing is lost', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLISH_RATE: '10' })
  const livestream = station()
  const institution = livestream.institution.id
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const other = await connect(t, hub, await hub.publisher([institution]))
  const publish = ({ client }: typeof other, playlistItemId: string) =>
    client.publishAsync(`inbox/${institution}`, JSON.stringify(playing(livestream, { playlistItemId })), {
      qos: 1,
    })
  let acknowledged = 0
  const began = performance.now()
  const all = Array.from({ length: 50 }, async (_, index) => {
    await publish(publisher, `${index}`)
    acknowledged++
  })
  await publish(other, 'other')
  t.ok(acknowledged < 50, 'another credential is not held back')
  await Promise.all(all)
  await publisher.received.count(51)
  t.ok(performance.now() - began > 2900, '30 of 50 events had to wait, the last for three seconds')
})

/** A peer that never reads: what the broker writes stays in memory. */
function deafPeer(): Duplex {
  return new Duplex({ read() {}, write() {} })
}

t.test('answers that nobody reads are bounded, also where each of them is small', async (t) => {
  const broker = await openBroker(t, { limits: { outgoingBuffer: 64 * 1024 } })
  const socket = deafPeer()
  const gone = new Promise<void>((resolve) => socket.once('close', resolve))
  broker.broker.accept(socket, 'deaf')
  socket.push(generate(connectPacket({ clientId: 'c' })))
  let pings = 0
  while (!socket.destroyed) {
    socket.push(Buffer.of(0xc0, 0))
    pings++
    await new Promise((resolve) => setImmediate(resolve))
  }
  await gone
  t.ok(pings < 2000, `${pings} answers of two bytes count for more than their bytes`)
  t.match(
    broker.lines.find(({ msg }) => msg === 'connection closed'),
    { reason: 'slow' },
  )
})

t.test('an unauthenticated client is cut off after at most 64 KiB', async (t) => {
  const broker = await openBroker(t)
  const table: [what: string, header: Buffer][] = [
    ['a CONNECT of 200 MB', Buffer.from([0x10, 0x80, 0x80, 0x80, 0x64])],
    ['a CONNECT of 70 kB', Buffer.from([0x10, 0xf0, 0xa2, 0x04])],
    ['another packet of 200 MB', Buffer.from([0x30, 0x80, 0x80, 0x80, 0x64])],
    ['a length without end', Buffer.from([0x10, 0xff, 0xff, 0xff, 0xff])],
  ]
  for (const [what, header] of table) {
    let taken = 0
    const socket = new Duplex({
      read() {},
      write(_chunk, _encoding, done) {
        done()
      },
    })
    broker.broker.accept(socket, 'hostile')
    socket.push(header)
    while (!socket.destroyed && taken < 10_000_000) {
      if (socket.readableLength === 0) {
        socket.push(Buffer.alloc(4096))
        taken += 4096
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
    t.ok(taken <= 64 * 1024 + 4096, `${what}: ${taken} bytes`)
  }
})

t.test('a CONNECT that drips is cut off when its time is over', async (t) => {
  const broker = await openBroker(t, { limits: { connectTimeoutMs: 100 } })
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  const gone = new Promise<void>((resolve) => socket.once('close', resolve))
  broker.broker.accept(socket, 'slow')
  const dripping = setInterval(() => socket.push(Buffer.of(0x10)), 10)
  t.teardown(() => clearInterval(dripping))
  socket.push(Buffer.from([0x10, 0x80, 0x01]))
  await gone
  t.pass('however long it goes on')
})

/** A publisher may send two events at once, and then one each second. */
const slow = { publishRate: 1 }

async function spendRate(t: Test, broker: PlainBroker): Promise<void> {
  const client = await peer(t, broker, 'first')
  client.send(publish('small', 1, 1), publish('small', 1, 2))
  await client.next('puback', 1)
}

/** Each client sends a PUBLISH of 900 kB, which waits for the publish rate. */
async function waitingPublishes(t: Test, broker: PlainBroker, count: number): Promise<Peer[]> {
  const clients: Peer[] = []
  for (let index = 0; index < count; index++) clients.push(await peer(t, broker, `studio ${index}`))
  const large = generate(publish('large', 1, 1, { payload: Buffer.alloc(900_000) }))
  for (const client of clients) await new Promise((resolve) => client.socket.write(large, resolve))
  return clients
}

t.test('publishes that wait for the rate are bounded in bytes', async (t) => {
  const broker = await openBroker(t, { limits: slow })
  // On a slow machine some get their turn before the last one waits.
  let passed = 0
  broker.receiveWith(async ({ topic }) => {
    if (topic === 'large') passed++
    return true
  })
  await spendRate(t, broker)
  const clients = await waitingPublishes(t, broker, 100)
  const cut = () =>
    broker.lines.filter(({ msg, reason }) => msg === 'connection closed' && reason === 'overload')
  while (cut().length + passed < 100 - 64 * 1.2) await new Promise((resolve) => setImmediate(resolve))
  t.ok(cut().length > 0 && cut().length < 50, `${cut().length} of 100 give way`)
  t.notOk(clients.at(-1)?.isClosed, 'the last one waits on')
})

t.test('a PUBLISH that waits goes with its connection', async (t) => {
  const broker = await openBroker(t, { limits: slow })
  await spendRate(t, broker)
  for (let round = 0; round < 3; round++) {
    await waitingPublishes(t, broker, 50)
    broker.broker.disconnectUser(broker.everybody.username)
    while (broker.broker.connectionCount() > 0) await new Promise((resolve) => setImmediate(resolve))
  }
  t.same(
    broker.lines.filter(({ reason }) => reason === 'overload'),
    [],
    'it makes room for others',
  )
})

t.test('of a client that may never publish nothing is kept that waits', async (t) => {
  const broker = await openBroker(t, { limits: slow, access: { publishes: () => false } })
  const sizes: number[] = []
  broker.receiveWith(async ({ payload }) => sizes.push(payload.length) > 0)
  const began = performance.now()
  await spendRate(t, broker)
  const clients = await waitingPublishes(t, broker, 100)
  while (sizes.length < 3) await new Promise((resolve) => setImmediate(resolve))
  const kept = () => {
    collectGarbage()
    return process.memoryUsage().arrayBuffers
  }
  // The clients' unsent bytes also count: the clients are in this process.
  await comes(() => kept() < 45_000_000, patienceMs)
  t.ok(kept() < 45_000_000, `${kept()} bytes are kept of 90,000,000`)
  t.notOk(
    clients.some(({ isClosed }) => isClosed),
    'nothing has to give way',
  )
  const most = 2 + (performance.now() - began) / 1000
  t.ok(sizes.length <= most, `at the rate of the credential: ${sizes.length} of at most ${most}`)
  t.ok(
    sizes.every((size) => size === 0),
    'it is decided without its payload',
  )
})
