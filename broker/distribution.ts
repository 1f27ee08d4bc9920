import type { Message } from '../event/message.ts'
import type { Change, Store } from '../store/store.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Outbox, Planned } from './outbox.ts'
import type { RetainedMessages, RetainedValue } from './retained.ts'
import { inFlightWindow, type Session, sendUnstored } from './session.ts'
import type { createSubscriptions } from './subscriptions.ts'
import { type Publish, preparePublish, type Qos } from './wire.ts'

export type Distribution = ReturnType<typeof createDistribution>

/** Who holds which filter. A session is in `stored` for a filter whose messages are queued for it. */
export interface Routes {
  /** Filters of persistent sessions above QoS 0, connected or not. */
  stored: ReturnType<typeof createSubscriptions<Session>>
  /** All other filters. */
  live: ReturnType<typeof createSubscriptions<Session>>
}

/**
 * The way of an accepted message to everyone who may have it: store once, then hand it to every open
 * connection without waiting for any of them.
 */
export function createDistribution(parts: {
  store: Store
  retained: RetainedMessages
  outbox: Outbox
  routes: Routes
  /** Second line of the ACL, asked once per message and set of permissions. */
  mayReceive: (session: Session, topic: string) => boolean
  clock: () => number
  metrics: Metrics
}) {
  const { store, retained, outbox, routes, mayReceive, clock, metrics } = parts

  return {
    /**
     * Stores the messages (retained values, queues of persistent sessions) and `alongside` in one commit,
     * then delivers. Resolves when every connected subscriber has been written to; rejects when nothing
     * was stored and nothing was delivered.
     */
    async distribute(messages: readonly Message[], alongside: readonly Change[] = []): Promise<void> {
      const now = clock()
      const changes: Change[] = [...alongside]
      const batch = messages.map((message) => ({ message, ...planQueues(message, changes) }))
      for (const message of messages) changes.push(...retained.change(message, now))
      await commit(
        changes,
        batch.flatMap(({ planned }) => planned),
      )
      for (const { message, planned, version } of batch) {
        const publish = preparePublish(message.topic, message.payload)
        retained.show(message, now)
        deliver(message, planned, publish)
        if (version !== routes.stored.version) await catchUp(message, planned, publish)
      }
    },

    /** Delivers to open connections only; for what need not, or cannot, be stored. */
    announce(messages: readonly Message[]): void {
      for (const message of messages) {
        const publish = preparePublish(message.topic, message.payload)
        const permitted = createPermittedCheck(message.topic)
        for (const routed of [routes.stored, routes.live]) {
          for (const [session, qos] of routed.match(message.topic)) {
            if (permitted(session)) sendUnstored(session, publish, lower(qos, 0), false)
          }
        }
        metrics.deliveries.inc()
      }
    },

    /**
     * Sends the retained messages of newly granted filters [MQTT-3.3.1-6], at the pace of the client. The
     * value is looked up when its turn comes, so that nothing older than a live message follows it.
     */
    async replay(session: Session, filters: ReadonlyMap<string, Qos>): Promise<void> {
      const { connection } = session
      const topics = new Map<string, Qos>()
      for (const [filter, qos] of filters) {
        for (const topic of retained.topics(filter)) topics.set(topic, higher(topics.get(topic) ?? 0, qos))
      }
      for (const [topic, granted] of topics) {
        await connection?.paced()
        while (session.inFlight.size >= inFlightWindow && connection?.isOpen) await turn()
        if (!connection || session.connection !== connection) return
        const value = retained.current(topic)
        if (!value || !mayReceive(session, topic)) continue
        await sendRetained(session, value, lower(granted, value.qos))
      }
    },
  }

  /** Takes the message into the queues of the persistent sessions that subscribed to it. */
  function planQueues(
    message: Message,
    changes: Change[],
  ): { planned: Map<Session, Planned>; version: number } {
    const planned = new Map<Session, Planned>()
    const { version } = routes.stored
    if (message.qos === 0) return { planned, version }
    const holders = routes.stored.match(message.topic)
    if (holders.size === 0) return { planned, version }
    const permitted = createPermittedCheck(message.topic)
    const sequence = outbox.nextSequence()
    for (const [session, qos] of holders) {
      if (permitted(session))
        plan(session, message, sequence, lower(qos, message.qos), false, planned, changes)
    }
    if (planned.size > 0) changes.push(outbox.bodyChange(sequence, message))
    return { planned, version }
  }

  function plan(
    session: Session,
    message: Message,
    sequence: number,
    qos: Qos,
    retain: boolean,
    planned: Map<Session, Planned>,
    changes: Change[],
  ): void {
    const taken = outbox.plan(session, message, sequence, qos, retain)
    if (!taken) return
    planned.set(session, taken.planned)
    changes.push(...taken.changes)
  }

  async function commit(changes: Change[], planned: readonly Map<Session, Planned>[]): Promise<void> {
    if (changes.length === 0) return
    const finished = outbox.finished.take()
    try {
      await store.commit([...finished, ...changes])
    } catch (error) {
      outbox.finished.putBack(finished)
      for (const plans of planned) outbox.revert([...plans.values()])
      throw error
    }
  }

  function deliver(message: Message, planned: ReadonlyMap<Session, Planned>, publish: Publish): void {
    const permitted = createPermittedCheck(message.topic)
    let deliveries = planned.size
    for (const [session, qos] of routes.live.match(message.topic)) {
      // One copy per client, at the higher QoS, where filters overlap [MQTT-3.3.5-1].
      if (!session.connection || planned.has(session) || !permitted(session)) continue
      sendUnstored(session, publish, lower(qos, message.qos), false)
      deliveries++
    }
    if (message.qos === 0) deliveries += deliverQos0(message, publish)
    for (const plan of planned.values()) outbox.sendPlanned(plan, publish)
    metrics.deliveries.inc(deliveries)
  }

  /** Messages of QoS 0 are not queued, so persistent sessions get them only here. */
  function deliverQos0(message: Message, publish: Publish): number {
    const permitted = createPermittedCheck(message.topic)
    const live = routes.live.match(message.topic)
    let deliveries = 0
    for (const [session] of routes.stored.match(message.topic)) {
      if (!session.connection || live.has(session) || !permitted(session)) continue
      sendUnstored(session, publish, 0, false)
      deliveries++
    }
    return deliveries
  }

  /** Serves persistent sessions that subscribed while the message was on its way to the store. */
  async function catchUp(message: Message, served: Map<Session, Planned>, publish: Publish): Promise<void> {
    if (message.qos === 0) return
    const changes: Change[] = []
    const planned = new Map<Session, Planned>()
    const sequence = outbox.nextSequence()
    for (const [session, qos] of routes.stored.match(message.topic)) {
      if (served.has(session) || !mayReceive(session, message.topic)) continue
      plan(session, message, sequence, lower(qos, message.qos), false, planned, changes)
    }
    if (planned.size === 0) return
    try {
      await commit([...changes, outbox.bodyChange(sequence, message)], [planned])
    } catch {
      // The event itself is stored and acknowledged. Whoever is left out here reconnects and asks anew.
      metrics.storeFailures.inc()
      for (const session of planned.keys()) session.connection?.cut('error', 'queue not stored')
      return
    }
    for (const plan of planned.values()) outbox.sendPlanned(plan, publish)
  }

  async function sendRetained(session: Session, value: RetainedValue, qos: Qos): Promise<void> {
    const { topic, payload, time, expires } = value
    const publish = preparePublish(topic, payload)
    metrics.deliveries.inc()
    if (session.clean || qos === 0) return sendUnstored(session, publish, qos, true)
    const message: Message = {
      topic,
      payload,
      qos,
      queue: { keep: 'every', time, ...(expires && { expires }) },
    }
    const changes: Change[] = []
    const planned = new Map<Session, Planned>()
    const sequence = outbox.nextSequence()
    plan(session, message, sequence, qos, true, planned, changes)
    await commit([...changes, outbox.bodyChange(sequence, message)], [planned])
    for (const plan of planned.values()) outbox.sendPlanned(plan, publish)
  }

  /** Sessions share few sets of permissions: the answer is found once for each. */
  function createPermittedCheck(topic: string): (session: Session) => boolean {
    const answers = new Map<string, boolean>()
    return (session) => {
      let answer = answers.get(session.permission)
      if (answer === undefined) {
        answer = mayReceive(session, topic)
        answers.set(session.permission, answer)
      }
      return answer
    }
  }
}

function lower(a: Qos, b: Qos): Qos {
  return a < b ? a : b
}

function higher(a: Qos, b: Qos): Qos {
  return a > b ? a : b
}

/** Acknowledgements come in with the next turns of the event loop. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5))
}
