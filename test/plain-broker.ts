import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import type { Principal } from '../acl/principal.ts'
import { type BrokerLimits, createBroker } from '../broker/broker.ts'
import { type FanOutLimits, openFanOut } from '../broker/fanout/fanout.ts'
import type { Access } from '../broker/login/access.ts'
import type { Received } from '../broker/publish.ts'
import type { Message } from '../event/message.ts'
import { createLoginLimit } from '../listener/login-limit.ts'
import { openEmbeddedStore } from '../store/embedded.ts'
import { createCalls } from '../store/nodes/calls.ts'
import { createOnlyNode, type Nodes } from '../store/nodes/nodes.ts'
import type { Store } from '../store/store.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { defaultLimits } from './default-limits.ts'

export type PlainBroker = Awaited<ReturnType<typeof startPlainBroker>>

/** Decides about a PUBLISH and stores it. True: the broker acknowledges. False: nothing was stored. */
type Receive = (received: Received) => Promise<boolean>

const everybody: Principal = { role: 'subscriber', username: 'everybody', filters: ['#'] }

/** Everybody may do everything on any topic. */
export const openAccess: Access = {
  authenticate: () => everybody,
  anonymous: everybody,
  isValid: () => true,
  publishes: () => true,
  mayPublish: () => ({ allowed: true }),
  maySubscribe: () => ({ allowed: true }),
  mayReceive: () => true,
}

/**
 * Starts `broker/` alone on plain loopback TCP. Each message goes to its subscribers, as with any broker.
 * - `directory` continues the store of an earlier broker.
 * - `wrapStore` puts a layer between the broker and its store.
 * - `rulesOf` says how the journal keeps a message.
 */
export async function startPlainBroker(
  options: {
    port?: number
    access?: Partial<Access>
    limits?: Partial<BrokerLimits & FanOutLimits>
    /** Failed log-ins of an address in a minute; 0: no limit. */
    loginFailures?: number
    logLevel?: string
    directory?: string
    wrapStore?: (store: Store) => Store
    /** Makes the broker one of several nodes, on the store that they share. */
    node?: { store: Store; nodes: Nodes }
    rulesOf?: (message: Message) => Partial<Message>
    clock?: () => number
    monotonic?: () => number
  } = {},
) {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'plain-broker-'))
  const own = options.node?.store ?? (await openEmbeddedStore(join(directory, 'store')))
  const store = options.wrapStore?.(own) ?? own
  const metrics = createMetrics()
  const lines: Record<string, unknown>[] = []
  const write = (line: string) => {
    lines.push(JSON.parse(line))
    if (options.logLevel) process.stdout.write(line)
  }
  const nodes = options.node?.nodes ?? createOnlyNode('test')
  const limits = {
    ...defaultLimits,
    maxPacket: 1024 * 1024,
    maxClientId: 65_535,
    maxSubscriptions: 10_000,
    outgoingBuffer: 16 * 1024 * 1024,
    publishRate: 0,
    queueLimit: 10_000,
    sessionExpiryMs: 3_600_000,
    ...options.limits,
  }
  const access = { ...openAccess, ...options.access }
  const clock = options.clock ?? Date.now
  const log = pino({ level: options.logLevel ?? 'debug' }, { write })
  const fanout = await openFanOut({ store, isLeader: nodes.isLeader, access, limits, clock, log, metrics })
  let receive: Receive = async ({ topic, payload, qos, retain, alongside }) => {
    const retained = retain && payload.length > 0 ? { retained: { slot: '', time: Date.now() } } : {}
    try {
      // An empty retained message removes the retained value of its topic [MQTT-3.3.1-10].
      if (retain && payload.length === 0) await fanout.retained.clear(topic)
      const message = { topic, payload, qos, ...retained, queue: { keep: 'every' as const } }
      await fanout.distribute(
        [{ ...message, ...options.rulesOf?.(message) }],
        [() => ({ changes: alongside })],
      )
      return true
    } catch {
      return false
    }
  }
  const broker = await createBroker({
    store,
    nodes,
    calls: createCalls({ store, nodes }),
    access,
    fanout,
    limits,
    loginLimit: createLoginLimit(options.loginFailures ?? 0, store),
    clock,
    log,
    metrics,
    ...(options.monotonic && { monotonic: options.monotonic }),
    inbox: async (received) => ({ outcome: (await receive(received)) ? 'published' : 'failed' }),
  })
  await broker.start()
  const server = createServer({ noDelay: true }, (socket) =>
    broker.accept(socket, socket.remoteAddress ?? 'unknown'),
  )
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve))
  const address = server.address()

  return {
    broker: { ...broker, distribute: fanout.distribute, announce: fanout.announce },
    /** From now on, `next` decides about each PUBLISH. */
    receiveWith(next: Receive): void {
      receive = next
    },
    everybody,
    store,
    metrics,
    directory,
    lines,
    port: typeof address === 'object' && address ? address.port : 0,
    async close(): Promise<void> {
      server.close()
      await broker.close()
      await store.close()
      if (options.directory === undefined) rmSync(directory, { recursive: true, force: true })
    },
  }
}
