import type { IPublishPacket } from 'mqtt-packet'
import root, { type Test } from 'tap'
import { createFailingStore } from '../broker/failing-store.ts'
import { type PlainBroker, startPlainBroker } from '../plain-broker.ts'
import { rawClient } from '../raw-client.ts'

export type Peer = Awaited<ReturnType<typeof rawClient>>

/** A broker that everybody may use. It closes when the test ends. */
export async function openBroker(t: Test, options: Parameters<typeof startPlainBroker>[0] = {}) {
  const broker = await startPlainBroker(options)
  t.teardown(broker.close)
  return broker
}

/** A broker whose store can fail or wait. */
export async function openFailing(t: Test, options: Parameters<typeof startPlainBroker>[0] = {}) {
  const store = createFailingStore()
  return { store, broker: await openBroker(t, { wrapStore: store.wrap, ...options }) }
}

/** A client that has logged in. */
export async function peer(t: Test, { port }: PlainBroker, clientId: string, fields = {}): Promise<Peer> {
  const client = await rawClient(t, port)
  await client.connect({ clientId, ...fields })
  return client
}

/** A client that has logged in and subscribed. */
export async function subscriber(
  t: Test,
  broker: PlainBroker,
  clientId: string,
  filters: Record<string, 0 | 1 | 2>,
  fields = {},
): Promise<Peer> {
  const client = await peer(t, broker, clientId, fields)
  subscribe(client, 1, filters)
  await client.next('suback')
  return client
}

export function subscribe(client: Peer, messageId: number, filters: Record<string, 0 | 1 | 2>): void {
  const subscriptions = Object.entries(filters).map(([topic, qos]) => ({ topic, qos }))
  client.send({ cmd: 'subscribe', messageId, subscriptions })
}

/** A PUBLISH packet. Its payload is its topic, unless `fields` has another payload. */
export function publish(
  topic: string,
  qos: 0 | 1 | 2,
  messageId = 1,
  fields: Partial<IPublishPacket> = {},
): IPublishPacket {
  return { cmd: 'publish', topic, payload: topic, qos, messageId, retain: false, dup: false, ...fields }
}

export const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')

/** The PUBLISH packets that a client has received, in order, each as `topic payload`. */
export function texts(client: Peer): string[] {
  return publishes(client).map(({ topic, payload }) => `${topic} ${payload}`)
}

export function publishes(client: Peer): IPublishPacket[] {
  return client.packets.filter((packet) => packet.cmd === 'publish')
}

/** Sends bytes and expects the connection to be closed without another packet. */
export async function closesAfter(t: Test, client: Peer, bytes: Buffer, why: string): Promise<void> {
  const before = client.packets.length
  client.send(bytes)
  await client.closed()
  t.equal(client.packets.length, before, why)
}

/** Adds a test: each of these packets, in hexadecimal digits, closes the connection without another packet. */
export function packetsThatClose(name: string, table: [what: string, bytes: string][]): void {
  root.test(name, async (t) => {
    const broker = await openBroker(t)
    for (const [what, bytes] of table) await closesAfter(t, await peer(t, broker, 'c'), hex(bytes), what)
  })
}
