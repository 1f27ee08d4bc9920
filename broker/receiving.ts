import { setTimeout as delay } from 'node:timers/promises'
import type { Principal } from '../acl/principal.ts'
import type { createPublishRate } from '../listener/publish-rate.ts'
import { createLock } from '../store/lock.ts'
import type { createRunningWork } from '../store/running-work.ts'
import type { Change, Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { ArrivedPublish } from './connection/connection-events.ts'
import type { Link } from './connection/link.ts'
import type { Qos } from './connection/wire.ts'
import type { createWills } from './login/wills.ts'
import type { Session } from './session/session.ts'
import { incomingChange, incomingPrefix } from './session/session-record.ts'

/** A PUBLISH or will of a client. */
export interface Received {
  principal: Principal
  clientId: string
  topic: string
  payload: Buffer
  qos: Qos
  retain: boolean
  isWill: boolean
  /** Wall clock, milliseconds since the epoch. */
  at: number
  /** `performance.now()` at the arrival of its last byte. */
  started: number
  /** Must be stored with the decision, or not at all. */
  alongside: readonly Change[]
  /** Charges the publish rate of the credential with what the event cost beyond one token. */
  charge(cost: number): void
}

type ReceivedWill = Pick<Received, 'principal' | 'clientId' | 'topic' | 'payload' | 'qos' | 'retain'>

/** Decides and stores what a client published. True: it may be acknowledged; false: nothing was stored. */
export type Receive = (received: Received) => Promise<boolean>

/** Between two attempts to publish a will: nobody would send it again. Milliseconds. */
const willRetryMs = 1_000
/**
 * What clients publish, until it may be acknowledged: each PUBLISH once, wills when their time has come.
 * Everything here rejects when the connection must be closed without an acknowledgement.
 */
export async function createReceiving(parts: {
  store: Store
  wills: ReturnType<typeof createWills>
  /** Received QoS 2 messages one client may leave unreleased. */
  incomingWindow: number
  rate: ReturnType<typeof createPublishRate>
  isValid: (principal: Principal) => boolean
  /** What must be over before the store is closed. */
  running: ReturnType<typeof createRunningWork>
  clock: () => number
  log: Log
  metrics: Metrics
}) {
  const { store, wills, incomingWindow, rate, isValid, running, clock, log, metrics } = parts
  const chargeOf = (principal: Principal) => (cost: number) =>
    rate.charge(principal.username, cost, performance.now())
  let receive: Receive = async () => false
  let state: 'new' | 'started' | 'closed' = 'new'
  const inTurn = await createLock(store, 'wills')
  /** Left-over wills that this node has begun with, by key. */
  const begun = new Set<string>()
  /** How many wills of each credential wait for its publish rate. */
  const waiting = new Map<string, number>()

  return {
    /** Sets what happens with publishes, and publishes the wills that a dead node left behind. */
    async start(onReceived: Receive): Promise<void> {
      receive = onReceived
      state = 'started'
      await keepTrying(allLeftOver)
    },

    /** Wills that wait, or cannot be published now, are left for the next start, or for another node. */
    close(): void {
      state = 'closed'
    },

    /** Publishes the wills of nodes that are gone. */
    async publishLeftOver(): Promise<void> {
      if (state === 'started') await keepTrying(allLeftOver)
    },

    /** How many wills of a credential wait for its publish rate. */
    waitingWills: (username: string): number => waiting.get(username) ?? 0,

    /**
     * Takes a PUBLISH. It is decided at once, but resolves in turn: acknowledgements keep the order of the
     * publishes [MQTT-4.6.0-2].
     */
    async publish(link: Link, publish: ArrivedPublish): Promise<void> {
      const { session } = link
      if (!session) throw new Error('a PUBLISH without session')
      const before = link.acknowledged
      const taken =
        publish.qos === 2 ? receiveOnce(link, session, publish) : receiveNow(link, session, publish, [])
      // Without a value: each would hold that of the one before, for as long as the connection lives.
      link.acknowledged = Promise.allSettled([before, taken]).then(() => undefined)
      try {
        await before
        await taken
      } finally {
        link.connection.finished(publish)
      }
    },

    /** Publishes the will of a connection that ended without DISCONNECT [MQTT-3.1.2-8]. */
    async will({ connection, session, willKey }: Link): Promise<void> {
      const will = connection.request?.will
      if (!session || !will) return
      const { principal, clientId } = session
      await inItsTurn(principal, () => publishOnce({ ...will, principal, clientId }, willKey))
    },

    /** Whether a QoS 2 packet identifier is received and not released; one on its way is waited for. */
    async isIncoming(session: Session, packetId: number): Promise<boolean> {
      await session.processing.get(packetId)?.catch(() => undefined)
      return session.incoming.has(packetId)
    },

    /**
     * Frees a QoS 2 packet identifier. PUBCOMP lets the client use it for a new message, so the release is
     * stored first [MQTT-4.3.3-2]; when that fails this never resolves and the connection is closed.
     */
    async release(session: Session, packetId: number): Promise<void> {
      const { clientId } = session
      try {
        if (!session.clean) await store.commit([{ del: incomingPrefix(clientId) + packetId }])
        session.incoming.delete(packetId)
      } catch (error) {
        metrics.storeFailures.inc()
        log.error({ err: error, clientId }, 'release of a QoS 2 message not stored')
        session.owner?.cut('error', 'release not stored')
        await new Promise(() => {})
      }
    },
  }

  async function allLeftOver(): Promise<boolean> {
    if (!wills.isHeir()) return true
    const left = (await wills.leftOver()).filter(({ key }) => !begun.has(key))
    for (const { key } of left) begun.add(key)
    await Promise.all(
      left.map(({ key, node: _node, ...will }) => inItsTurn(will.principal, () => leftOver(will, key))),
    )
    return true
  }

  /** One node at a time, so that another that thinks it is its business finds nothing left. */
  async function leftOver(will: ReceivedWill, key: string): Promise<boolean> {
    const isPublished = await inTurn((held) => publishOnce(will, key, held))
    if (isPublished) begun.delete(key)
    return isPublished
  }

  /**
   * A will waits for the publish rate like any other PUBLISH of its credential, and before those that come later.
   * Resolves when it has been tried once, or has to wait.
   */
  async function inItsTurn({ username }: Principal, publish: () => Promise<boolean>): Promise<void> {
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
    will: ReceivedWill,
    key: string | undefined,
    held: readonly Change[] = [],
  ): Promise<boolean> {
    if (key && !(await wills.isDue(key))) return true
    const alongside = key ? [{ del: key }, ...held] : []
    // It was written with a right to publish that has been taken away.
    if (!isValid(will.principal)) {
      await store.commit(alongside)
      return true
    }
    const now = { at: clock(), started: performance.now() }
    return receive({ ...will, isWill: true, ...now, alongside, charge: chargeOf(will.principal) })
  }

  /** Tries once, and then in the background until it is done. */
  async function keepTrying(attempt: () => Promise<boolean>): Promise<void> {
    if (!(await isDone(attempt))) running.add(tryAgain(attempt))
  }

  async function tryAgain(attempt: () => Promise<boolean>): Promise<void> {
    do await delay(willRetryMs, undefined, { ref: false })
    while (state !== 'closed' && !(await isDone(attempt)))
  }

  async function isDone(attempt: () => Promise<boolean>): Promise<boolean> {
    try {
      return await attempt()
    } catch (err) {
      log.error({ err }, 'will not published yet')
      return false
    }
  }

  /** QoS 2: a retransmission is recognised by its packet identifier until that is released [MQTT-4.3.3-2]. */
  async function receiveOnce(link: Link, session: Session, publish: ArrivedPublish): Promise<void> {
    const { packetId } = publish
    if (session.incoming.has(packetId)) return
    const underway = session.processing.get(packetId)
    if (underway) return underway
    if (session.incoming.size + session.processing.size >= incomingWindow) {
      link.connection.cut('protocol', `${incomingWindow} QoS 2 messages not released`)
      throw new Error('too many QoS 2 messages not released')
    }
    // A clean session does not outlive its connection: there is nothing to store.
    const alongside = session.clean ? [] : [incomingChange(session, packetId)]
    const processing = receiveNow(link, session, publish, alongside)
    session.processing.set(packetId, processing)
    try {
      await processing
      session.incoming.add(packetId)
    } finally {
      session.processing.delete(packetId)
    }
  }

  async function receiveNow(
    link: Link,
    { principal, clientId }: Session,
    { topic, payload, qos, retain, started }: ArrivedPublish,
    alongside: readonly Change[],
  ): Promise<void> {
    const charge = chargeOf(principal)
    const from = { principal, clientId, isWill: false, at: clock(), started, alongside, charge }
    if (await receive({ topic, payload, qos, retain, ...from })) return
    link.connection.cut('error', 'publish not stored')
    throw new Error('publish not stored')
  }
}
