import type { Message } from '../../event/message.ts'
import type { Change, Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { lowerQos, type Publish, preparePublish } from '../connection/wire.ts'
import type { Outbox } from '../queue/outbox.ts'
import type { Planned } from '../queue/queues.ts'
import type { Session } from '../session/session.ts'
import type { createSubscriptions } from '../session/subscriptions.ts'
import type { Moments } from './moments.ts'
import { createPortions, type Portion } from './portions.ts'
import type { RetainedMessages } from './retained.ts'
import { decodeMessages, encodeMessages, type ToldMessage } from './told-messages.ts'
import { type Recipient, sendToEach } from './unstored.ts'

/** A message on its way. */
interface Delivery {
  message: Message
  publish: Publish
  /** The queues that take it, and when they did. */
  planned: Map<Session, Planned>
  plannedAt: number
  /** New subscribers get it. */
  isShown: boolean
  /** Where it is what they get: how to take it back. */
  takeBack: (() => Promise<void>) | undefined
  /** It is on its way to those for whom nothing is stored. */
  isLive: boolean
}

/** Where nodes tell each other what they distribute. */
const channel = 'deliver'

export type Distribution = ReturnType<typeof createDistribution>

/** Who holds which filter. A session is in `stored` for a filter whose messages are queued for it. */
export interface Routes {
  /** Filters of persistent sessions above QoS 0, connected or not. */
  stored: ReturnType<typeof createSubscriptions<Session>>
  /** All other filters. */
  live: ReturnType<typeof createSubscriptions<Session>>
  /** How many filters other nodes have granted. */
  grantedElsewhere: number
  /** How many filters other nodes have removed. */
  removedElsewhere: number
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
  moments: Moments
  clock: () => number
  metrics: Metrics
}) {
  const { store, retained, outbox, routes, mayReceive, moments, clock, metrics } = parts
  const isShared = store.watch !== undefined
  /** To those for whom nothing is stored, and from queues: their orders have nothing to do with each other. */
  const live = createPortions()
  const queued = createPortions()
  /** Payloads by topic, those that wait included. */
  const sending = new Map<string, Buffer[]>()
  /** Batches that nobody has got anything of yet, in the order of their commits. */
  const held = new Set<readonly Delivery[]>()
  store.watch?.(channel, (change) => {
    if (!('tell' in change)) return
    void live.deliver(decodeMessages(change.value).map(toldPortion))
  })

  return {
    /**
     * Stores the messages (retained values, queues of persistent sessions) and `alongside` in one commit, and
     * delivers: to those for whom nothing is stored while it is on its way to the disk, to the others when it is
     * safe. Resolves when every connected subscriber has been written to; rejects when it is not certain that
     * everybody has it, mostly because nothing was stored. `stored`, `grantedSince`: see `Distribute`.
     */
    async distribute(
      messages: readonly Message[],
      alongside: readonly Change[] = [],
      stored: () => void = () => undefined,
      grantedSince?: number,
    ): Promise<void> {
      if (grantedSince !== undefined) {
        await queueMissed(messages, alongside, grantedSince)
        stored()
        return
      }
      const now = clock()
      const { grantedElsewhere } = routes
      const changes: Change[] = [...alongside]
      const plannedAt = moments.next()
      const batch = messages.map((message) => planDelivery(message, plannedAt, changes))
      changes.push(...retained.changes(messages, now))
      if (isShared && messages.length > 0) changes.push({ tell: channel, value: encodeMessages(messages) })
      const underway = () => {
        const [first] = held
        if (first !== batch) return
        held.delete(batch)
        const early = batch.filter(({ message }) => !message.isReport)
        for (const delivery of early) show(delivery, now)
        void live.deliver(early.map(livePortion))
      }
      held.add(batch)
      try {
        await commit(changes, batch, underway)
      } finally {
        held.delete(batch)
      }
      stored()
      // Both begin before anything else happens: who subscribes from now on is not late.
      const isAnyLate = routes.grantedElsewhere > grantedElsewhere
      await Promise.all([deliverRest(batch, now), isAnyLate ? queueLate(batch, grantedElsewhere) : undefined])
    },

    /** Delivers to open connections only; for what need not, or cannot, be stored. */
    announce(messages: readonly Message[]): void {
      void live.deliver(messages.map((message) => toldPortion({ ...message, qos: 0 })))
    },

    /** Payloads on their way to those for whom nothing is stored, oldest first. */
    sending: (topic: string): readonly Buffer[] => sending.get(topic) ?? [],

    /** Resolves when all that is on its way to them now has been sent. */
    sent: async (): Promise<void> => live.ended(),
  }

  function planDelivery(
    message: Message,
    plannedAt: number,
    changes: Change[],
    isMeant?: (session: Session) => boolean,
  ): Delivery {
    const publish = preparePublish(message.topic, message.payload)
    const planned = planQueues(message, changes, isMeant)
    return { message, publish, planned, plannedAt, isShown: false, takeBack: undefined, isLive: false }
  }

  /**
   * Takes the message into the queues of the persistent sessions that are subscribed to it now. Who subscribes
   * while it is being stored finds it among the retained ones, because its SUBACK waits for a later commit.
   */
  function planQueues(
    message: Message,
    changes: Change[],
    isMeant: (session: Session) => boolean = () => true,
  ): Map<Session, Planned> {
    const planned = new Map<Session, Planned>()
    if (message.qos === 0) return planned
    const holders = routes.stored.match(message.topic)
    if (holders.size === 0) return planned
    const permitted = createPermittedCheck(message.topic)
    const sequence = outbox.nextSequence()
    for (const [session, qos] of holders) {
      if (!isMeant(session) || !permitted(session)) continue
      const taken = outbox.plan(session, message, sequence, lowerQos(qos, message.qos), false)
      if (!taken) continue
      planned.set(session, taken.planned)
      changes.push(...taken.changes)
    }
    if (planned.size > 0) changes.push(outbox.bodyChange(sequence, message))
    return planned
  }

  /** For sessions that were subscribed on another node before the commit, which this node heard of only then. */
  async function queueLate(batch: readonly Delivery[], grantedBefore: number): Promise<void> {
    const changes: Change[] = []
    const late = batch.map(({ message, planned, plannedAt }) => {
      const isLate = (session: Session) => session.grantedElsewhere > grantedBefore && !planned.has(session)
      return planDelivery(message, plannedAt, changes, isLate)
    })
    await queueOnly(late, changes)
  }

  /** For sessions that the node which distributed the messages may not have heard of. */
  async function queueMissed(
    messages: readonly Message[],
    alongside: readonly Change[],
    grantedSince: number,
  ): Promise<void> {
    const changes = [...alongside]
    const isMissed = (session: Session) => session.grantedAt >= grantedSince
    const plannedAt = moments.next()
    await queueOnly(
      messages.map((message) => planDelivery(message, plannedAt, changes, isMissed)),
      changes,
    )
  }

  async function queueOnly(batch: readonly Delivery[], changes: Change[]): Promise<void> {
    await commit(changes, batch)
    for (const { planned, publish } of batch) {
      for (const plan of planned.values()) outbox.sendPlanned(plan, publish)
    }
  }

  async function commit(changes: Change[], batch: readonly Delivery[], underway?: () => void): Promise<void> {
    if (changes.length === 0) return
    const finished = outbox.finished.take()
    const { removedElsewhere } = routes
    try {
      await store.commit([...finished, ...changes], underway)
    } catch (error) {
      outbox.finished.putBack(finished)
      for (const { planned } of batch) outbox.revert([...planned.values()])
      // Should the store not be readable either, the next event of the topic takes its place.
      await Promise.allSettled(batch.map(({ takeBack }) => takeBack?.()))
      throw error
    }
    if (routes.removedElsewhere > removedElsewhere) for (const delivery of batch) withdraw(delivery)
  }

  /** From sessions whose filter was removed on another node before the commit, which this node heard of only then. */
  function withdraw({ message, planned }: Delivery): void {
    const holders = routes.stored.match(message.topic)
    for (const [session, plan] of planned) {
      if (session.owner || holders.has(session)) continue
      planned.delete(session)
      outbox.withdraw(plan)
    }
  }

  /** To everybody who has not got it yet. */
  async function deliverRest(batch: readonly Delivery[], now: number): Promise<void> {
    for (const delivery of batch) show(delivery, now)
    const rest = batch.filter(({ isLive }) => !isLive)
    const planned = batch.filter(({ planned }) => planned.size > 0)
    await Promise.all([
      // Even if there is nothing left: behind what went out before the commit.
      live.deliver(rest.map(livePortion)),
      queued.deliver(planned.map(queuedPortion)),
    ])
  }

  /** In the order of the commits, which is that of the store. */
  function show(delivery: Delivery, now: number): void {
    if (delivery.isShown) return
    delivery.isShown = true
    delivery.takeBack = retained.show(delivery.message, now, delivery.plannedAt)
  }

  /** What those get for whom nothing is stored. */
  function livePortion(delivery: Delivery): Portion {
    const { message, publish, planned } = delivery
    delivery.isLive = true
    metrics.deliveries.inc(planned.size)
    return openPortion(message, publish, (session) => planned.has(session))
  }

  function queuedPortion({ message, planned, publish }: Delivery): Portion {
    const send = () => {
      for (const plan of planned.values()) outbox.sendPlanned(plan, publish)
      return []
    }
    return { bytes: message.payload.length, send }
  }

  /** What another node distributes, to the clients of this one; what was queued comes with the queues. */
  function toldPortion(message: ToldMessage): Portion {
    const stored = message.qos === 0 ? undefined : routes.stored.match(message.topic)
    const publish = preparePublish(message.topic, message.payload)
    return openPortion(message, publish, (session) => stored?.has(session) ?? false)
  }

  /** For those who are connected and subscribed when its turn comes. */
  function openPortion(
    message: ToldMessage,
    publish: Publish,
    isQueued: (session: Session) => boolean,
  ): Portion {
    const { topic, payload, qos } = message
    const all = sending.get(topic) ?? []
    sending.set(topic, all)
    all.push(payload)
    function* send() {
      retained.sent(topic, payload)
      const recipients = recipientsOf(message, isQueued)
      metrics.deliveries.inc(recipients.length)
      yield* sendToEach(recipients, publish, qos)
      all.shift()
      if (all.length === 0) sending.delete(topic)
    }
    return { bytes: payload.length, send }
  }

  /** One entry per client, at the higher QoS, where filters overlap [MQTT-3.3.5-1]. */
  function recipientsOf({ topic, qos }: ToldMessage, isQueued: (session: Session) => boolean): Recipient[] {
    const permitted = createPermittedCheck(topic)
    // Compared with undefined, because to see whether it is truthy V8 would have to fetch it.
    const isMeant = (session: Session) => session.outgoing !== undefined && permitted(session)
    const holders = routes.live.match(topic)
    const recipients = [...holders].filter(([session]) => isMeant(session) && !isQueued(session))
    if (qos > 0) return recipients
    // Messages of QoS 0 are not queued, so persistent sessions get them only here.
    const others = [...routes.stored.match(topic)]
    return [...recipients, ...others.filter(([session]) => isMeant(session) && !holders.has(session))]
  }

  /** Sessions share few sets of permissions: the answer is found once for each. */
  function createPermittedCheck(topic: string): (session: Session) => boolean {
    const answers = new Map<string, boolean>()
    let lastPermission: string | undefined
    let lastAnswer = false
    return (session) => {
      const { permission } = session
      if (permission === lastPermission) return lastAnswer
      lastAnswer = answers.get(permission) ?? mayReceive(session, topic)
      answers.set(permission, lastAnswer)
      lastPermission = permission
      return lastAnswer
    }
  }
}
