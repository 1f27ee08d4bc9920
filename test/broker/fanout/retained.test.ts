import { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { generate, type Packet } from 'mqtt-packet'
import t from 'tap'
import type { Message } from '../../../event/message.ts'
import { openBroker } from '../../conformance/peers.ts'
import type { PlainBroker } from '../../plain-broker.ts'

/* Retained values that wait for clients which read slowly, or not at all. */

for (const { kind, clean, most } of [
  { kind: 'a clean session', clean: true, most: 100 },
  // Each value has its entry in the backlog of the session.
  { kind: 'a persistent session', clean: false, most: 170 },
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

/** A client that subscribes to everything, and never reads. What the broker writes to it stays in memory. */
function deafClient({ broker }: PlainBroker, clientId: string, clean: boolean) {
  const socket = new Duplex({ read() {}, write() {} })
  broker.accept(socket, '127.0.0.1')
  const send = (packet: Packet) => void socket.push(generate(packet))
  const protocol = { protocolId: 'MQTT', protocolVersion: 4 } as const
  send({ cmd: 'connect', ...protocol, clientId, clean, keepalive: 0 })
  send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: '#', qos: 1 }] })
  return {
    socket,
    /** Resolves when the broker has written all that it writes to a client that does not read. */
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
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}
