import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import type { Livestream } from '../../../validator/feed/feed.ts'
import { createEventParser, type StreamEvent } from '../../event-stream.ts'
import type { Random } from '../../random.ts'
import type { Issued } from '../../start-hub.ts'
import { until } from '../../until.ts'
import type { ClusterNode } from './cluster.ts'
import type { StreamConnection, StreamRecord } from './judge-streams.ts'
import { markerOf } from './publishers.ts'

export type Reader = ReturnType<typeof createReader>

/** What a reader reads: the path of its stream, with which credential, and the topics that it gets. */
export interface Reading {
  name: string
  path: string
  login: Issued
  wants: (topic: string) => boolean
  /** The reader never leaves a node by itself. */
  stays?: boolean
}

/** Readers of one livestream, of several, of all; of control events only; behind a delay. */
export async function someReadings(
  node: ClusterNode,
  livestreams: readonly [Livestream, ...Livestream[]],
): Promise<Reading[]> {
  const reader = (...filters: string[]): Promise<Issued> =>
    node.ask('credentials.add', { role: 'reader', label: 'fence', filters })
  const all = await reader('radio/#')
  const controls = await reader('radio/+/control')
  const [one] = livestreams
  const several = livestreams.slice(1, 5)
  const isOf = (some: readonly Livestream[]) => (topic: string) =>
    some.some(({ id }) => topic.startsWith(`radio/${id}/`))
  const ofSeveral = several.map(({ id }) => `livestream=${id}`).join('&')
  return [
    { name: 'one', path: `/livestreams/${one.id}/stream`, login: all, wants: isOf([one]) },
    { name: 'several', path: `/stream?${ofSeveral}`, login: all, wants: isOf(several) },
    { name: 'all', path: '/stream', login: all, wants: isOf(livestreams) },
    { name: 'settled', path: '/stream', login: all, wants: isOf(livestreams), stays: true },
    { name: 'delayed', path: '/stream?delay=2', login: all, wants: isOf(livestreams) },
    {
      name: 'controls',
      path: '/stream',
      login: controls,
      wants: (topic) => isOf(livestreams)(topic) && topic.endsWith('/control'),
    },
  ]
}

/** A reader of a stream, which comes back to any node with the id of the last event that it got. */
export function createReader({ name, path, login, wants, stays, nodes, random }: ReaderParts) {
  const record: StreamRecord = { name, wants, connections: [] }
  let current: { connection: StreamConnection; end: () => void } | undefined
  let lastId: string | undefined

  return {
    record,

    /** Reads until `isOver`. */
    async run(isOver: () => boolean): Promise<void> {
      while (!isOver()) {
        const { closed } = open(random.oneOf(nodes))
        const patience = stays ? 60_000 : random.between(50, 6_000)
        const enough = new AbortController()
        await Promise.race([closed, delay(patience, undefined, enough).catch(() => undefined), over(isOver)])
        enough.abort()
        leave()
        await delay(random.between(0, 400))
      }
    },

    /** Reads from this node, and stays. Throws if that takes longer than 60 s. */
    async visit(node: ClusterNode): Promise<void> {
      leave()
      await until(() => {
        if (current === undefined || current.connection.isClosed) open(node)
        return current?.connection.readyAt !== undefined && !current.connection.isClosed
      }, 60_000)
    },

    leave: async () => leave(),
  }

  function leave(): void {
    current?.end()
    current = undefined
  }

  function open(node: ClusterNode): { closed: Promise<void> } {
    const connection: StreamConnection = {
      node: node.index,
      openedAt: performance.now(),
      after: lastId === undefined ? undefined : Number(lastId),
      state: [],
      events: [],
    }
    record.connections.push(connection)
    const sent = request({
      host: 'localhost',
      port: node.httpsPort,
      path,
      ca: readFileSync(node.caPath),
      agent: false,
      auth: `${login.username}:${login.password}`,
      headers: lastId === undefined ? {} : { 'last-event-id': lastId },
    })
    const closed = new Promise<void>((resolve) => {
      sent.on('error', () => undefined)
      sent.once('close', () => {
        connection.isClosed = true
        resolve()
      })
    })
    current = { connection, end: () => sent.destroy() }
    sent.once('response', (response: IncomingMessage) => {
      connection.status = response.statusCode
      const read = createEventParser({ event: (event) => take(connection, event) })
      response.setEncoding('utf8').on('data', read)
      response.on('error', () => undefined)
    })
    sent.end()
    return { closed }
  }

  function take(connection: StreamConnection, { event, id, data }: StreamEvent): void {
    // An `EventSource` that was closed hands on nothing more.
    if (current?.connection !== connection) return
    lastId = id ?? lastId
    if (event === 'ready') connection.readyAt = Number(id)
    else if (event === 'missed') connection.hasMissed = true
    else if (event === 'bye') connection.reason = String(data.reason)
    else {
      const marker = `${data.livestreamId} ${markerOf(JSON.stringify(data.event))}`
      if (id === undefined) connection.state.push(marker)
      else connection.events.push({ id: Number(id), marker })
    }
  }
}

type ReaderParts = Reading & {
  nodes: readonly [ClusterNode, ...ClusterNode[]]
  random: Random
}

/** Resolves soon after the end of the run. */
async function over(isOver: () => boolean): Promise<void> {
  while (!isOver()) await delay(100, undefined, { ref: false })
}
