import { randomUUID } from 'node:crypto'
import type { Principal } from '../../acl/principal.ts'
import { decodeValue, encodeValue } from '../../journal/value-codec.ts'
import type { createPublishRate } from '../../listener/publish-rate.ts'
import { createLock } from '../../store/lock.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import { once } from '../../store/once.ts'
import type { createRunningWork } from '../../store/running-work.ts'
import type { Change, Store } from '../../store/store.ts'
import { untilDone } from '../../store/until-done.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Client } from '../connection/client.ts'
import type { Will } from '../connection/connect-packet.ts'
import type { Received } from '../publish.ts'
import type { Session } from '../session/session.ts'
import type { Access } from './access.ts'

/** A will that is to be published, with its client and principal. */
interface SentWill extends Will {
  clientId: string
  principal: Principal
}

/** A will that outlived its node. */
interface StoredWill extends SentWill {
  key: string
  /** The node its client was connected to. */
  node: string
}

export type Wills = Awaited<ReturnType<typeof createWills>>

/** Wills of the connected clients of one credential, bytes. */
const maxWillBytes = 16 * 1024 * 1024
/** Most waiting wills of one credential. Above this a log-in with a will is refused: each accepted one is published. */
const maxWaitingWills = 1_000
/** The error that is not logged again: the pipeline has logged why the will is not stored. */
const notStored = new Error('the will is not stored')

/** Publishes the will of each connection that ends without DISCONNECT; if its node has gone, another node does. */
export async function createWills(parts: {
  store: Store
  nodes: Nodes
  /** Decides about a PUBLISH or will, and stores the decision. False: nothing was stored. */
  accept: (received: Received) => Promise<boolean>
  rate: ReturnType<typeof createPublishRate>
  isValid: (principal: Principal) => boolean
  /** Work that must end before the store is closed. */
  running: ReturnType<typeof createRunningWork>
  clock: () => number
  log: Log
}) {
  const { store, nodes, accept, rate, isValid, running, clock, log } = parts
  const stored = createStoredWills(store, nodes)
  let state: 'new' | 'started' | 'closed' = 'new'
  const inLock = await createLock(store, 'wills')
  /** The keys of left-over wills that this node has begun to publish. */
  const begun = new Set<string>()
  /** How many wills of each credential wait for its publish rate. */
  const waiting = createSums()

  return {
    /** Stores the will of a connection. Returns its key. */
    store: ({ clientId, principal }: Session, will: Will): Promise<string> =>
      stored.put({ clientId, principal, ...will }),

    /** Publishes the wills that a dead node left behind. */
    async start(): Promise<void> {
      state = 'started'
      await keepTrying(allLeftOver)
    },

    /** Publishes the wills of nodes that are gone. */
    async publishLeftOver(): Promise<void> {
      if (state === 'started') await keepTrying(allLeftOver)
    },

    /** Publishes the will of a connection that ended without DISCONNECT [MQTT-3.1.2-8]. */
    publish(client: Client): Promise<void> {
      const published = publishOf(client)
      running.add(published)
      return published
    },

    /** How many wills of a credential wait for its publish rate. */
    waiting: waiting.of,

    /** Stops publishing: wills that wait, or that failed, are left for the next start, or for another node. */
    close(): void {
      state = 'closed'
    },
  }

  async function publishOf({ connection, session, willKey }: Client): Promise<void> {
    const will = connection.request?.will
    if (!session || !will) return
    const { principal, clientId } = session
    await atPublishRate(principal, () => publishOnce({ ...will, principal, clientId }, willKey))
  }

  async function allLeftOver(): Promise<void> {
    const left = (await stored.leftOver()).filter(({ key }) => !begun.has(key))
    for (const { key } of left) begun.add(key)
    await Promise.all(
      left.map(({ key, node: _node, ...will }) => atPublishRate(will.principal, () => leftOver(will, key))),
    )
  }

  /** One node at a time: if two nodes try, the second finds no will left. */
  async function leftOver(will: SentWill, key: string): Promise<void> {
    await inLock((held) => publishOnce(will, key, held))
    begun.delete(key)
  }

  /**
   * Publishes a will. The will waits for the publish rate like any PUBLISH of its credential, in the order of arrival.
   * Resolves when the will has been tried once, or when it has to wait.
   */
  async function atPublishRate({ username }: Principal, publish: () => Promise<void>): Promise<void> {
    const resume = () => {
      waiting.add(username, -1)
      if (state === 'closed') return false
      running.add(keepTrying(publish))
      return true
    }
    if (rate.enter(username, resume)) return keepTrying(publish)
    waiting.add(username, 1)
  }

  async function publishOnce(
    will: SentWill,
    key: string | undefined,
    held: readonly Change[] = [],
  ): Promise<void> {
    if (key && !(await stored.isDue(key))) return
    const alongside = key ? [{ del: key }, ...held] : []
    // The credential has ended since the log-in: the will is removed, and not published.
    if (!isValid(will.principal)) {
      await store.commit(alongside)
      return
    }
    const now = { at: clock(), started: performance.now() }
    if (!(await accept({ ...will, isWill: true, ...now, alongside }))) throw notStored
  }

  /** Tries once, and then in the background until it is done. */
  async function keepTrying(attempt: () => Promise<void>): Promise<void> {
    const failed = (err: unknown) => {
      if (err !== notStored) log.error({ err }, 'will not published yet')
    }
    try {
      await attempt()
    } catch (error) {
      failed(error)
      running.add(untilDone(attempt, { failed, isWanted: () => state !== 'closed', hasFailed: true }))
    }
  }
}

/**
 * Wills in the store, one per connection: when a client takes its session over, the end of the old connection must not
 * remove the new will.
 */
function createStoredWills(store: Store, nodes: Nodes) {
  return {
    /** Stores the will of a connection. Returns its key. */
    async put({ payload, ...will }: SentWill): Promise<string> {
      const key = `will/${encodeURIComponent(will.clientId)}/${randomUUID()}`
      await store.commit([{ put: key, value: encodeValue({ node: nodes.self, ...will }, payload) }])
      return key
    },

    /** The wills of connections that ended with their node. Only the leader gets any, because it publishes them. */
    async leftOver(): Promise<StoredWill[]> {
      if (!nodes.isLeader()) return []
      const wills: StoredWill[] = []
      for await (const [key, value] of store.range('will/')) {
        const { header, payload } = decodeValue<Omit<StoredWill, 'key' | 'payload'>>(value)
        if (!nodes.isLiving(header.node)) wills.push({ ...header, key, payload })
      }
      return wills
    },

    /** Whether a will is still to be published: a node that took this one for dead may have published it. */
    async isDue(key: string): Promise<boolean> {
      // An attempt without an answer may still be applied. After this commit no earlier commit is applied any more.
      await store.commit([{ tell: 'settled', value: '' }])
      return (await store.get(key)) !== undefined
    },
  }
}

/** Bounds the wills of a credential: those of its connected clients, and those that wait to be published. */
export function createWillRoom(wills: Pick<Wills, 'waiting'>, mayPublish: Access['mayPublish']) {
  const kept = createSums()

  return {
    /** Takes room for the will of a connection, if it has one. A will that is going to be denied loses its payload. */
    take(client: Client, principal: Principal): boolean {
      const { request } = client.connection
      if (!request?.will) return true
      const { username } = principal
      if (wills.waiting(username) >= maxWaitingWills) return false
      const isDenied = !mayPublish(principal, request.will.topic).allowed
      if (isDenied) request.will = { ...request.will, payload: Buffer.alloc(0) }
      const { topic, payload } = request.will
      const bytes = Buffer.byteLength(topic) + payload.length
      if (kept.of(username) + bytes > maxWillBytes) return false
      kept.add(username, bytes)
      client.willGone = once(() => kept.add(username, -bytes))
      return true
    },
  }
}

/** A sum for each credential; the sum 0 is not kept. */
function createSums() {
  const sums = new Map<string, number>()
  return {
    of: (username: string): number => sums.get(username) ?? 0,
    add(username: string, by: number): void {
      const sum = (sums.get(username) ?? 0) + by
      if (sum > 0) sums.set(username, sum)
      else sums.delete(username)
    },
  }
}
