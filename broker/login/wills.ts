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

/** Wills of the connected clients of one credential, bytes. */
const maxWillBytes = 16 * 1024 * 1024

/** Counts the bytes of wills while their clients are connected. */
export function createWillRoom() {
  const bytesOf = new Map<string, number>()

  return {
    /** Takes room for a will of a credential. The answer gives it back; undefined: there is none. */
    take(username: string, { topic, payload }: Will): (() => void) | undefined {
      const bytes = Buffer.byteLength(topic) + payload.length
      if ((bytesOf.get(username) ?? 0) + bytes > maxWillBytes) return undefined
      count(username, bytes)
      return once(() => count(username, -bytes))
    },
  }

  function count(username: string, bytes: number): void {
    const total = (bytesOf.get(username) ?? 0) + bytes
    if (total > 0) bytesOf.set(username, total)
    else bytesOf.delete(username)
  }
}

/** A will that is to be published, and whose it is. */
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

/** The pipeline has logged why. */
const notStored = new Error('the will is not stored')

/**
 * Wills, stored one per connection: a client that takes its session over must not lose the new will to the end of the old
 * connection. Each is published when its time has come, if need be by another node.
 */
export async function createWills(parts: {
  store: Store
  nodes: Nodes
  /** Decides and stores what a client published. False: nothing was stored. */
  accept: (received: Received) => Promise<boolean>
  rate: ReturnType<typeof createPublishRate>
  isValid: (principal: Principal) => boolean
  /** What must be over before the store is closed. */
  running: ReturnType<typeof createRunningWork>
  clock: () => number
  log: Log
}) {
  const { store, nodes, accept, rate, isValid, running, clock, log } = parts
  let state: 'new' | 'started' | 'closed' = 'new'
  const inTurn = await createLock(store, 'wills')
  /** Left-over wills that this node has begun with, by key. */
  const begun = new Set<string>()
  /** How many wills of each credential wait for its publish rate. */
  const waiting = new Map<string, number>()

  return {
    key: (clientId: string, connection: string) => `will/${encodeURIComponent(clientId)}/${connection}`,

    change(key: string, clientId: string, principal: Principal, { payload, ...will }: Will): Change {
      return { put: key, value: encodeValue({ clientId, principal, node: nodes.self, ...will }, payload) }
    },

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
    async publish({ connection, session, willKey }: Client): Promise<void> {
      const will = connection.request?.will
      if (!session || !will) return
      const { principal, clientId } = session
      await inItsTurn(principal, () => publishOnce({ ...will, principal, clientId }, willKey))
    },

    /** How many wills of a credential wait for its publish rate. */
    waiting: (username: string): number => waiting.get(username) ?? 0,

    /** Wills that wait, or cannot be published now, are left for the next start, or for another node. */
    close(): void {
      state = 'closed'
    },
  }

  async function allLeftOver(): Promise<void> {
    if (!nodes.isLeader()) return
    const left = (await storedWills()).filter(({ key }) => !begun.has(key))
    for (const { key } of left) begun.add(key)
    await Promise.all(
      left.map(({ key, node: _node, ...will }) => inItsTurn(will.principal, () => leftOver(will, key))),
    )
  }

  /** One node at a time, so that another that thinks it is its business finds nothing left. */
  async function leftOver(will: SentWill, key: string): Promise<void> {
    await inTurn((held) => publishOnce(will, key, held))
    begun.delete(key)
  }

  /**
   * A will waits for the publish rate like any other PUBLISH of its credential, and before those that come later.
   * Resolves when it has been tried once, or has to wait.
   */
  async function inItsTurn({ username }: Principal, publish: () => Promise<void>): Promise<void> {
    const resume = () => {
      count(username, -1)
      if (state === 'closed') return false
      running.add(keepTrying(publish))
      return true
    }
    if (rate.enter(username, resume)) return keepTrying(publish)
    count(username, 1)
  }

  function count(username: string, by: 1 | -1): void {
    const left = (waiting.get(username) ?? 0) + by
    if (left > 0) waiting.set(username, left)
    else waiting.delete(username)
  }

  async function publishOnce(
    will: SentWill,
    key: string | undefined,
    held: readonly Change[] = [],
  ): Promise<void> {
    if (key && !(await isDue(key))) return
    const alongside = key ? [{ del: key }, ...held] : []
    // It was written with a right to publish that has been taken away.
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

  /** Whether it is still to be published: another node that took this one for dead may have done so. */
  async function isDue(key: string): Promise<boolean> {
    if (!nodes.isShared) return true
    // An attempt without an answer may have worked; nothing sent before is applied after this.
    await store.commit([{ tell: 'settled', value: '' }])
    return (await store.get(key)) !== undefined
  }

  /** The wills of connections that ended with their node. */
  async function storedWills(): Promise<StoredWill[]> {
    const wills: StoredWill[] = []
    for await (const [key, value] of store.range('will/')) {
      const { header, payload } = decodeValue<Omit<StoredWill, 'key' | 'payload'>>(value)
      if (!nodes.isLiving(header.node)) wills.push({ ...header, key, payload })
    }
    return wills
  }
}
