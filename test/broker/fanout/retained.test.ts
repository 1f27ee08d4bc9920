import { Duplex } from 'node:stream'
import { mock } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { generate, type Packet } from 'mqtt-packet'
import t, { type Test } from 'tap'
import type { Message } from '../../../event/message.ts'
import { collectGarbage } from '../../collect-garbage.ts'
import { openBroker, subscribe, subscriber } from '../../conformance/peers.ts'
import type { PlainBroker } from '../../plain-broker.ts'
import { message } from '../session/crashing-hub.ts'

/* Retained values that wait for clients which read slowly, or not at all. */

for (const { kind, clean, most } of [
  { kind: 'a clean session', clean: true, most: 100 },
  // Each value has its entry in the backlog of the session.
  { kind: 'a persistent session', clean: false, most: 220 },
]) {
  t.test(`values that wait for a client take little memory: ${kind}`, async (t) => {
    const broker = await openBroker(t)
    const topics = 3_000
    await retain(broker, topics, 300)
    const connect = async (count: number, name: string) => {
      const clients = Array.from({ length: count }, (_, index) =>
        deafClient(broker, `${name}${index}`, clean),
      )
      for (const client of clients) await client.isBehind()
      return clients.length
    }
    // The first clients also take the memory that the code needs once.
    await connect(5, 'first')
    const before = heapBytes()
    const clients = await connect(20, 'c')
    const each = (heapBytes() - before) / clients / topics
    t.ok(each < most, `${Math.round(each)} bytes for each value`)
  })
}

for (const clean of [true, false]) {
  const kind = clean ? 'a clean session' : 'a persistent session'
  t.test(`a client that takes nothing while values wait for it is cut off: ${kind}`, async (t) => {
    const broker = await openBroker(t)
    await retain(broker, 100, 1_000)
    mockTimers(t)
    const client = deafClient(broker, 'c', clean)
    await client.isBehind()
    mock.timers.tick(10_000)
    t.notOk(client.socket.destroyed, 'it has 10 s for each 16 KiB')
    mock.timers.tick(20_000)
    t.ok(client.socket.destroyed)
    t.match(endOf(broker), { reason: 'slow', detail: /^not read for \d+ ms$/ })
  })
}

t.test('a client that acknowledges nothing while values wait for it is cut off', async (t) => {
  const broker = await openBroker(t)
  await retain(broker, 1, 100)
  const client = await subscriber(t, broker, 'c', { live: 1 })
  await broker.broker.distribute(Array.from({ length: 60 }, () => message('live', 'x')))
  const { messageId: first = 0 } = await client.next('publish', 59).then(() => client.next('publish'))
  mockTimers(t)
  subscribe(client, 2, { '#': 1 })
  await client.next('suback', 1)
  const acknowledge = async (from: number, count: number) => {
    for (let nth = from; nth < from + count; nth++) client.send({ cmd: 'puback', messageId: first + nth })
    await client.settled()
  }
  await client.settled()
  mock.timers.tick(9_999)
  await acknowledge(0, 1)
  mock.timers.tick(10_000)
  t.notOk(client.isClosed)
  await acknowledge(1, 9)
  t.match(await client.next('publish', 60), { topic: 'radio/0/track', retain: true })

  await broker.broker.distribute([message('live', 'x')])
  subscribe(client, 3, { 'radio/#': 1 })
  await client.next('suback', 2)
  await client.settled()
  mock.timers.tick(10_000)
  await client.closed()
  t.match(endOf(broker), { reason: 'slow', detail: 'no message acknowledged for 10000 ms' })
})

t.test('a persistent session gets values at QoS 0 whatever it has not acknowledged', async (t) => {
  const broker = await openBroker(t)
  await retain(broker, 1, 100)
  const client = await subscriber(t, broker, 'c', { live: 1 }, { clean: false })
  await broker.broker.distribute(Array.from({ length: 60 }, () => message('live', 'x')))
  await client.next('publish', 59)
  subscribe(client, 2, { 'radio/#': 0 })
  t.match(await client.next('publish', 60), { topic: 'radio/0/track', retain: true, qos: 0 })
})

function mockTimers(t: Test): void {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  t.teardown(() => mock.timers.reset())
}

/** The line of the log that says why the broker closed a connection. */
function endOf({ lines }: PlainBroker) {
  return lines.find(({ msg }) => msg === 'connection closed')
}

/** A client that subscribes to everything and never reads: written bytes stay in memory. */
function deafClient({ broker }: PlainBroker, clientId: string, clean: boolean) {
  const socket = new Duplex({ read() {}, write() {} })
  broker.accept(socket, '127.0.0.1')
  const send = (packet: Packet) => void socket.push(generate(packet))
  const protocol = { protocolId: 'MQTT', protocolVersion: 4 } as const
  send({ cmd: 'connect', ...protocol, clientId, clean, keepalive: 0 })
  send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: '#', qos: 1 }] })
  return {
    socket,
    /** Resolves when the broker writes no more, because the client does not read. */
    async isBehind(): Promise<void> {
      while (socket.writableLength <= 16 * 1024) await nextTurn()
      for (let turn = 0; turn < 10; turn++) await nextTurn()
    },
  }
}

async function retain({ broker }: PlainBroker, count: number, bytes: number): Promise<void> {
  const payload = Buffer.alloc(bytes, 'x')
  const rules = { retained: { slot: '', time: 1 }, queue: { keep: 'latest' as const, time: 1 } }
  const values = Array.from(
    { length: count },
    (_, n): Message => ({ topic: `radio/${n}/track`, payload, qos: 1, ...rules }),
  )
  while (values.length > 0) await broker.distribute(values.splice(0, 100))
}

function heapBytes(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}
