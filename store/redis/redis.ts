import { randomBytes } from 'node:crypto'
import { type FollowedStore, withListeners } from '../nodes/followed-store.ts'
import type { Dumpable } from '../store.ts'
import { createRedisClients, nameOf, type RedisServer } from './client.ts'
import { createCommitting } from './committing.ts'
import { type Connection, createConnection, type OnConnection } from './connection.ts'
import { blockMs, followLog, type Known, type LogReader, later, readPosition } from './log.ts'
import { createLogReading } from './reading.ts'
import { keysOf, logMarks, start } from './script.ts'
import { createSending } from './sending.ts'

export interface RedisStoreOptions {
  server: RedisServer
  /** All nodes with the same project and stage share one store. */
  project: string
  stage: string
  /** Milliseconds after which a commit or a read rejects if Redis has not answered. */
  timeoutMs?: number
  /** Bytes of the log of changes. A node that falls further behind must load everything again. */
  logBytes?: number
  /** How many replicas must have a commit before it resolves. */
  replicas?: number
  onConnection?: OnConnection
  /** Called when the log of a reachable Redis cannot be read for 3 s, and when reading works again. */
  onReading?: OnConnection
}

/**
 * The driver for a store that nodes share, in one Redis (one server, Sentinel or Cluster). Rejects with a readable
 * reason if Redis cannot be reached.
 *
 * Waiting commits go to a script as one numbered group. The script applies the group once, however often the node sends
 * it, and appends the group to the log that other nodes read. After `timeoutMs` without an answer, a commit rejects.
 * Redis may still apply this commit, but never after a later commit of this node.
 *
 * The settings of Redis (append-only file, `appendfsync`) decide whether a commit survives power loss.
 */
export async function openRedisStore(options: RedisStoreOptions): Promise<FollowedStore & Dumpable> {
  const { server, project, stage, timeoutMs = 5_000, logBytes = 64 * 1024 * 1024, replicas = 0 } = options
  const node = randomBytes(9).toString('base64url')
  const keys = keysOf(`${project}:${stage}`)
  const name = nameOf(server)
  const clients = await createRedisClients(server, timeoutMs).catch((cause: unknown) => {
    throw new Error(`${name} cannot be used`, { cause })
  })
  const connection = createConnection(clients.connect('hub-store'), { timeoutMs, quietMs: timeoutMs })
  const position = await connection
    .ask((send) => readPosition({ send }, keys))
    .catch((cause: unknown) => {
      connection.close()
      clients.close()
      throw new Error(`${name} cannot be used`, { cause })
    })
  if (options.onConnection) connection.onConnection(options.onConnection)
  const markEvery = Math.ceil(logBytes / logMarks)
  const sending = createSending({ connection, keys, node, markEvery, replicas })
  let log: LogReader | undefined
  /** The id of the newest log entry that Redis has named in an answer. */
  let seen = position
  const known: Known = {
    id: () => later(seen, log?.position() ?? start),
    saw(id) {
      seen = later(seen, id)
    },
  }
  const committing = createCommitting({ sending, timeoutMs, log: () => log, known })
  let closing: Promise<void> | undefined
  const askWhileOpen: Connection['ask'] = (attempt) =>
    closing ? Promise.reject(closedError()) : connection.ask(attempt)

  return withListeners({
    driver: 'redis',
    isShared: true,

    ...createLogReading(askWhileOpen, keys, known),

    commit(changes) {
      return closing ? Promise.reject(closedError()) : committing.commit(changes)
    },

    async enter(changes, membership) {
      if (closing) throw closedError()
      await committing.enter(changes, membership)
    },

    async catchUp() {
      const reader = log
      if (!reader) throw new Error('the store is not followed')
      await connection.ask(async (send) => {
        const head = await readPosition({ send }, keys)
        await new Promise<void>((resolve) => reader.whenPassed(head, resolve))
      })
    },

    follow(listener, onGap, isUrgent = () => true) {
      if (log || closing) throw new Error('the store is followed already, or closed')
      const following = createConnection(clients.connect('hub-follow'), {
        timeoutMs,
        quietMs: blockMs + timeoutMs,
      })
      log = followLog({
        connection: following,
        keys,
        node,
        position,
        listener,
        onGap,
        onOwn: committing.onOwn,
        seen: () => seen,
        isAwaited: () => isUrgent() || committing.isBusy(),
        upSince: connection.upSince,
        onReading: options.onReading ?? (() => {}),
        onLost() {
          // Redis may have lost the entry `seen`. The reader must no longer look for this entry.
          seen = start
          committing.onLost()
        },
      })
    },

    close() {
      closing ??= close()
      return closing
    },
  })

  async function close(): Promise<void> {
    await committing.ended()
    await log?.close()
    connection.close()
    clients.close()
  }
}

function closedError(): Error {
  return new Error('the store is closed')
}
