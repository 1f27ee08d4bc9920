import { randomUUID } from 'node:crypto'
import type { Principal } from '../../acl/principal.ts'
import { decodeValue, encodeValue } from '../../journal/entry.ts'
import type { PublishRate } from '../../listener/publish-rate.ts'
import { storeKeys } from '../../store/keys.ts'
import { createLock } from '../../store/lock.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import { once } from '../../store/once.ts'
import type { createRunningWork } from '../../store/running-work.ts'
import type { Change, Store } from '../../store/store.ts'
import { untilDone } from '../../store/until-done.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Client } from '../connection/client.ts'
import type { Will } from '../connection/connect-packet.ts'
import type { Received } from '../publish.ts'
import { eachOf } from '../session/each-of.ts'
import type { Session } from '../session/session.ts'
import type { Access } from './access.ts'

/** A will, with the client and principal that it is published for. */
interface SentWill extends Will {
  clientId: string
  principal: Principal
  /** The address of the client. Undefined in the wills that earlier releases stored. */
  address?: string
}

/** A stored will of a client whose node is gone. */
interface StoredWill extends SentWill {
  key: string
  /** Id of the node that the client was connected to. */
  node: string
}

export type Wills = Awaited<ReturnType<typeof createWills>>

/** Maximum bytes of topics and payloads in the wills of one credential's connected clients. */
const maxWillBytes = 16 * 1024 * 1024
/**
 * Maximum number of wills of one credential that wait for its publish rate. At this number, log-ins with a will are
 * refused: an accepted will must be published.
 */
const maxWaitingWills = 1_000
/** Thrown if a will is not stored. `validator/pipeline.ts` has already logged the cause. */
const notStored = new Error('the will is not stored')

/** Publishes the will of each connection that ends without DISCONNECT, also for nodes that are gone. */
export async function createWills(parts: {
  store: Store
  nodes: Nodes
  /** Decides about a PUBLISH or will, and stores the decision. False: nothing was stored. */
  accept: (received: Received) => Promise<boolean>
  rate: PublishRate
  isValid: Access['isValid']
  isBanned: Access['isBanned']
  /** Work that must end before the store is closed. */
  running: ReturnType<typeof createRunningWork>
  clock: () => number
  log: Log
  metrics: Metrics
}) {
  const { store, nodes, accept, rate, isValid, isBanned, running, clock } = parts
  const stored = createStoredWills(store, nodes)
  let isClosed = false
  const keepTrying = createTrying(parts, () => isClosed)
  const inLock = await createLock(store, 'wills')
  /** The keys of the left-over wills that this node is publishing. A will is left over if its node is gone. */
  const begun = new Set<string>()
  /** How many wills of each credential wait for its publish rate. */
  const waiting = createSums()

  return {
    /** Makes a key for the will of a connection. */
    newKey: stored.newKey,

    /** Stores the will of a connection from `address`. */
    store: (key: string, { clientId, principal }: Session, will: Will, address: string): Promise<void> =>
      stored.put(key, { clientId, principal, address, ...will }),

    /**
     * Removes a will that must not be published. If the store fails, tries again: a will that stays would be published
     * later. Never rejects.
     */
    discard: (key: string): Promise<void> =>
      keepTrying(() => store.commit([{ del: key }]), 'will not removed yet'),

    /** Publishes all left-over wills. Resolves after the first try. */
    async publishLeftOver(): Promise<void> {
      if (!isClosed) await keepTrying(publishAllLeftOver)
    },

    /** Publishes the will of a connection that ended without DISCONNECT [MQTT-3.1.2-8]. */
    publish(client: Client): Promise<void> {
      const published = publishOf(client)
      running.add(published)
      return published
    },

    /**
     * Closes the connections whose wills another node has published, because it took this node for gone. Their clients
     * come back, each with its will: otherwise none would go out when they are really gone.
     */
    endPublished: (clients: Iterable<Client>): Promise<void> => {
      // With CONNACK, the will is stored.
      const withWill = [...clients].filter(({ session, willKey }) => session?.outgoing && willKey)
      return keepTrying(async () => {
        // A node that held this lock before may still be publishing: it asked before it heard of the return. Whoever gets
        // the lock later has heard of it, because the log of changes has one order.
        await inLock(async () => undefined)
        await eachOf(withWill, async ({ connection, willKey }) => {
          if (willKey && !(await stored.isDue(willKey))) connection.cut('cut-off', 'its will was published')
        })
      })
    },

    /** How many wills of a credential wait for its publish rate. */
    waiting: waiting.of,

    /** Stops publishing. Unpublished wills stay stored for another node or the next start. */
    close(): void {
      isClosed = true
    },
  }

  async function publishOf({ connection, session, willKey }: Client): Promise<void> {
    const will = connection.request?.will
    if (!session || !will) return
    const { principal, clientId } = session
    const sent: SentWill = { ...will, principal, clientId, address: connection.remoteAddress }
    await atPublishRate(principal, () => publishOnce(sent, willKey))
  }

  async function publishAllLeftOver(): Promise<void> {
    const left = (await stored.leftOver()).filter(({ key }) => !begun.has(key))
    for (const { key } of left) begun.add(key)
    await Promise.all(
      left.map(({ key, node, ...will }) =>
        atPublishRate(will.principal, () => publishLeftOver(will, key, node)),
      ),
    )
  }

  /** Publishes a left-over will in a lock. If two nodes try, the second node finds that the will is gone. */
  async function publishLeftOver(will: SentWill, key: string, node: string): Promise<void> {
    await inLock(async (held) => {
      // Meanwhile the node may have come back, with its clients.
      if (!nodes.isLiving(node)) await publishOnce(will, key, held)
    })
    begun.delete(key)
  }

  /**
   * Calls `publish` when the publish rate of the credential allows it. Resolves after the first try, or at once if the
   * will has to wait.
   */
  async function atPublishRate({ username }: Principal, publish: () => Promise<void>): Promise<void> {
    const resume = () => {
      waiting.add(username, -1)
      if (isClosed) return false
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
    const { principal, clientId, address } = will
    // A will is void after the end of its credential, and during a ban of its client.
    if (!isValid(principal) || isBanned?.(principal.username, clientId, address)) {
      await store.commit(alongside)
      return
    }
    const now = { at: clock(), started: performance.now() }
    if (!(await accept({ ...will, isWill: true, ...now, alongside }))) throw notStored
  }
}

/**
 * Returns a function that calls `attempt` and waits until this first attempt has ended. If it fails, further attempts
 * follow in the background. They end when one succeeds, or when `isClosed` returns true.
 */
function createTrying(
  { running, log, metrics }: { running: ReturnType<typeof createRunningWork>; log: Log; metrics: Metrics },
  isClosed: () => boolean,
) {
  return async (
    attempt: () => Promise<unknown>,
    problem: 'will not published yet' | 'will not removed yet' = 'will not published yet',
  ): Promise<void> => {
    const failed = (err: unknown) => {
      if (err === notStored) return
      metrics.storeFailures.inc()
      log.error({ err }, problem)
    }
    try {
      await attempt()
    } catch (error) {
      failed(error)
      running.add(untilDone(attempt, { failed, isWanted: () => !isClosed(), hasFailed: true }))
    }
  }
}

/**
 * The wills in the store. Each connection has a key: the end of an older connection must not remove the client's newer
 * will.
 */
function createStoredWills(store: Store, nodes: Nodes) {
  const { prefix } = storeKeys.will
  return {
    newKey: (clientId: string): string => `${prefix}${encodeURIComponent(clientId)}/${randomUUID()}`,

    async put(key: string, { payload, ...will }: SentWill): Promise<void> {
      await store.commit([{ put: key, value: encodeValue({ node: nodes.self, ...will }, payload) }])
    },

    /** The wills of connections whose node is gone, for the leader to publish. */
    async leftOver(): Promise<StoredWill[]> {
      if (!nodes.isLeader()) return []
      const wills: StoredWill[] = []
      for await (const [key, value] of store.range(prefix)) {
        const { header, payload } = decodeValue<Omit<StoredWill, 'key' | 'payload'>>(value)
        if (!nodes.isLiving(header.node)) wills.push({ ...header, key, payload })
      }
      return wills
    },

    /** Whether a will is still stored. A node that took this node for dead may have published the will. */
    async isDue(key: string): Promise<boolean> {
      // An earlier commit may have got no answer. The store applies such a commit before this `tell`, or never. So the
      // `get` below sees the outcome of the earlier commit.
      await store.commit([{ tell: 'settled', value: '' }])
      return (await store.get(key)) !== undefined
    },
  }
}

/** Limits the wills of each credential: `maxWillBytes` and `maxWaitingWills`. */
export function createWillRoom(wills: Pick<Wills, 'waiting'>, mayPublish: Access['mayPublish']) {
  const kept = createSums()

  return {
    /**
     * Takes room for the will of a connection, if any. False: there is no room. Drops the payload of a will that is
     * going to be denied.
     */
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
      client.freeWillRoom = once(() => kept.add(username, -bytes))
      return true
    },
  }
}

/** Keeps a sum for each user name. A sum of 0 takes no memory. */
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
