import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { generate, parser } from 'mqtt-packet'
import pino from 'pino'
import type { Message } from '../../../event/message.ts'
import { createMembership } from '../../../store/nodes/membership.ts'
import { createOnlyNode } from '../../../store/nodes/nodes.ts'
import { type PlainBroker, startPlainBroker } from '../../plain-broker.ts'
import { createSharedSpace, settled } from '../../shared-store.ts'
import { type Bounds, type Event, streamOf } from './promises.ts'
import { createWire } from './wire.ts'

export type Hub = Awaited<ReturnType<typeof startHub>>

/** Starts a hub of `count` nodes. Store and connections are in memory, and the store survives crashes. */
export async function startHub(count: number, bounds: Bounds, clock: () => number) {
  const space = createSharedSpace()
  const directory = mkdtempSync(join(tmpdir(), 'promises-'))
  const abandoned: Promise<unknown>[] = []
  const nodes = await startAll()

  return {
    /** Connects to a node. Returns the client's end of the connection. */
    connect(index: number) {
      const [here, there] = createWire()
      nodeAt(index).broker.accept(there, '127.0.0.1')
      return here
    },

    /** Calls `accepted` for each acknowledged event. Resolves after the last one, or after a crash. */
    publish: (index: number, events: readonly Event[], accepted: (event: Event) => void) =>
      nodeAt(index).publish(events, accepted),

    /** Resolves when all nodes have received all commits. */
    settled: () => Promise.all(nodes.map(({ settled }) => settled())),

    /** Trims the journal by one batch on each node. Never rejects. */
    async trim(): Promise<void> {
      for (const { broker } of [...nodes]) {
        // The commits of a crashed node reject.
        await trimOn(broker).catch(() => undefined)
      }
    },

    /** How many messages a session has lost, as operators see it. */
    async droppedOf(index: number, clientId: string): Promise<number | undefined> {
      return (await nodeAt(index).broker.session(clientId))?.dropped
    },

    /** Resolves when only `connections` clients are connected, and the node has stored that all others left. */
    async rests(index: number, connections: number): Promise<void> {
      const node = nodeAt(index)
      while (node.broker.connectionCount() > connections + 1) await nextTurn()
      for (let turn = 0; turn < 10; turn++) await nextTurn()
      await node.settled()
    },

    /** Cuts a node off from its store and publisher, and starts it again. */
    async crash(index: number): Promise<void> {
      const { abandon } = nodeAt(index)
      abandoned.push(abandon())
      nodes[index] = await start(index)
    },

    async close(): Promise<void> {
      for (const { abandon } of nodes) abandoned.push(abandon())
      await Promise.allSettled(abandoned)
      rmSync(directory, { recursive: true, force: true })
    },
  }

  /**
   * Trims the journal of a node by one batch. Only a new message moves the journal's window, so the node gets one. No
   * filter matches the topic of this message.
   */
  async function trimOn({ distribute, retained, trimming }: PlainBroker['broker']): Promise<void> {
    await distribute([{ topic: '$behind', payload: Buffer.from(''), qos: 0, queue: { keep: 'every' } }])
    await retained.sweep()
    await trimming.sweep()
  }

  async function startAll() {
    const all = []
    for (let index = 0; index < count; index++) all.push(await start(index))
    return all
  }

  function nodeAt(index: number) {
    const node = nodes[index % nodes.length]
    if (!node) throw new Error('no node')
    return node
  }

  async function start(index: number) {
    const own = space.open()
    const shared = count > 1 ? own : undefined
    const store = shared ?? { ...own, isShared: false }
    const log = pino({ level: 'silent' })
    const name = `node-${index}`
    const onGap = (reason: Error) => Promise.reject(reason)
    const parts = { name, idFile: join(directory, name), onGap, log }
    const membership = shared && (await createMembership({ ...parts, store: shared }))
    const plain = await startPlainBroker({
      directory,
      clock,
      node: { store, nodes: membership ?? createOnlyNode('test') },
      logLevel: 'silent',
      rulesOf,
      limits: { sessionExpiryMs: 10 * 365 * 24 * 3_600_000, ...bounds },
    })
    await membership?.join()
    const { broker } = plain
    const [here, there] = createWire()
    broker.accept(there, '127.0.0.1')
    const publisher = createPublisher(here, `publisher-${index}`)

    return {
      broker,
      publish: publisher.publish,
      settled: () => (shared ? settled(shared) : own.commit([{ tell: 'heard', value: '' }])),
      async abandon(): Promise<void> {
        own.cut()
        publisher.cut()
        await membership?.leave().catch(() => undefined)
        await plain.close().catch(() => undefined)
      },
    }
  }
}

/** The payload of an event says how the journal keeps it. */
function rulesOf({ payload }: { payload: Buffer }): Partial<Message> {
  const event: Event = JSON.parse(payload.toString())
  const { keep, time, expires } = event
  const until = expires === undefined ? {} : { expires }
  const retained = keep === 'latest' ? { retained: { slot: '', time } } : {}
  const stream = streamOf(event)
  const belongs = stream === undefined ? { isReport: true as const } : { stream }
  return { ...belongs, ...retained, queue: { keep, time, ...until } }
}

function createPublisher(socket: ReturnType<typeof createWire>[0], clientId: string) {
  const parse = parser()
  const waiting = new Map<number, () => void>()
  let packetId = 0
  parse.on('packet', (packet) => {
    const { cmd, messageId = 0 } = packet
    if (cmd === 'pubrec') send({ cmd: 'pubrel', messageId })
    if (cmd !== 'puback' && cmd !== 'pubrec') return
    waiting.get(messageId)?.()
    waiting.delete(messageId)
  })
  socket.on('data', (chunk) => void (socket.destroyed || parse.parse(chunk)))
  socket.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => socket.on('close', resolve))
  send({ cmd: 'connect', protocolId: 'MQTT', protocolVersion: 4, keepalive: 0, clientId, clean: true })

  return {
    async publish(events: readonly Event[], accepted: (event: Event) => void): Promise<void> {
      const answers = events.map((event) => {
        packetId = (packetId % 60_000) + 1
        const { accepted: _1, isKept: _2, isWhole: _3, ...payload } = event
        const { topic, qos } = event
        const messageId = packetId
        send({
          cmd: 'publish',
          topic,
          qos,
          messageId,
          retain: false,
          dup: false,
          payload: JSON.stringify(payload),
        })
        return new Promise<void>((resolve) => {
          waiting.set(messageId, () => {
            accepted(event)
            resolve()
          })
        })
      })
      await Promise.race([Promise.all(answers), closed])
    },
    cut: () => void socket.destroy(),
  }

  function send(packet: Parameters<typeof generate>[0]): void {
    if (!socket.destroyed) socket.write(generate(packet))
  }
}
