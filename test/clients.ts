import { readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { createSecureContext, type SecureContext } from 'node:tls'
import { connectAsync, type IClientOptions, type IPublishPacket, type MqttClient } from 'mqtt'
import type { Test } from 'tap'
import type { Report } from '../validator/messages.ts'
import { patienceMs } from './patience.ts'
import type { Issued } from './start-hub.ts'

/** A message that a client received. */
export interface Arrived {
  topic: string
  payload: Buffer
  json: Record<string, unknown>
  packet: IPublishPacket
}

/** The node that a client connects to. */
export interface Broker {
  mqttPort: number
  caPath: string
}

/** Connects an mqtt.js client over TLS. `received` collects its messages. The client ends with the test. */
export async function connect(t: Test, broker: Broker, login: Issued, options: IClientOptions = {}) {
  const received = createInbox()
  const ca = readFileSync(broker.caPath, 'utf8')
  const settings: IClientOptions & { secureContext: SecureContext } = {
    ca, // for connections over WebSocket, which do not take `secureContext`
    secureContext: contextOf(ca),
    username: login.username,
    password: login.password,
    protocolVersion: 4,
    reconnectPeriod: 0,
    connectTimeout: patienceMs,
    ...options,
  }
  // Without reconnects, it rejects if the connection ends before its CONNACK. Otherwise the test would hang.
  const client = await connectAsync(
    `mqtts://localhost:${broker.mqttPort}`,
    settings,
    settings.reconnectPeriod !== 0,
  )
  // Nagle's algorithm would delay small packets by up to 40 ms.
  if (client.stream instanceof Socket) client.stream.setNoDelay(true)
  client.on('error', () => {})
  client.on('message', (topic, payload, packet) =>
    received.add({ topic, payload, json: parse(payload), packet }),
  )
  t.teardown(() => client.endAsync(true))
  return { client, received }
}

const contexts = new Map<string, SecureContext>()

/** One TLS context per CA: making a context costs half as much as a handshake. */
function contextOf(ca: string): SecureContext {
  const context = contexts.get(ca) ?? createSecureContext({ ca })
  contexts.set(ca, context)
  return context
}

/** Connects a publisher that subscribes to its feedback. `publish` resolves with the report about the event. */
export async function connectPublisher(t: Test, broker: Broker, login: Issued, institution: string) {
  const { client, received } = await connect(t, broker, login)
  await client.subscribeAsync(`feedback/${institution}`, { qos: 1 })
  return {
    client,
    received,
    async publish(event: unknown, options: { topic?: string; qos?: 0 | 1 | 2 } = {}): Promise<Report> {
      const payload = Buffer.isBuffer(event) || typeof event === 'string' ? event : JSON.stringify(event)
      const seen = received.all.length
      await client.publishAsync(options.topic ?? `inbox/${institution}`, payload, { qos: options.qos ?? 1 })
      const arrived = await received.until(() => true, seen)
      return arrived.json as unknown as Report
    },
  }
}

/** Collects the messages that a client receives. A test can wait for further ones. */
function createInbox() {
  const all: Arrived[] = []
  let wake = () => {}

  return {
    all,
    add(arrived: Arrived): void {
      all.push(arrived)
      wake()
    },
    /** Resolves with the first message that `passes` accepts, from index `from` on. Rejects after `patienceMs`. */
    async until(passes: (arrived: Arrived) => boolean, from = 0): Promise<Arrived> {
      const deadline = Date.now() + patienceMs
      let next = from
      for (;;) {
        for (; next < all.length; next++) {
          const arrived = all[next]
          if (arrived && passes(arrived)) return arrived
        }
        await new Promise<void>((resolve, reject) => {
          const late = () => reject(new Error(`nothing that passes among ${all.length} messages`))
          const timer = setTimeout(late, Math.max(deadline - Date.now(), 0))
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
    },
    async count(count: number): Promise<void> {
      if (count > 0) await this.until(() => all.length >= count)
    },
  }
}

function parse(payload: Buffer): Record<string, unknown> {
  try {
    return JSON.parse(payload.toString())
  } catch {
    return {}
  }
}

/** Resolves when the connection of a client is gone. */
export function closed(client: MqttClient): Promise<void> {
  if (!client.connected) return Promise.resolve()
  const known = closings.get(client)
  if (known) return known
  const closing = new Promise<void>((resolve) => {
    client.once('close', () => {
      closings.delete(client)
      resolve()
    })
  })
  closings.set(client, closing)
  return closing
}

/** The promises that `closed` returned. All calls for one connection share one event listener. */
const closings = new WeakMap<MqttClient, Promise<void>>()
