import type { Message } from '../../event/message.ts'
import type { Entry } from '../../journal/entry.ts'
import type { Journal } from '../../journal/journal.ts'
import type { RetainedMessages } from '../../journal/retained.ts'
import type { Returnable } from '../../journal/returnable.ts'
import type { Change } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { type Publish, preparePublish } from '../connection/wire.ts'
import type { Access } from '../login/access.ts'
import type { Session } from '../session/session.ts'
import type { Routes } from '../session/subscriptions.ts'
import type { Reading } from './reading.ts'
import { createDeliveryLine, type Delivery, type Recipient, sendToEach } from './writing.ts'

/** The messages of one commit on their way. */
interface Batch {
  readonly messages: readonly Message[]
  readonly publishes: readonly Publish[]
  /** The whole commit. */
  readonly changes: readonly Change[]
  readonly now: number
  /** When they are accepted, as the journal has it. */
  readonly at: number
  /** To be called when the commit is underway: see `Store`. */
  readonly underway: (first: number) => void
  /** Its events went out before they were stored. */
  isEarly: boolean
  /** How to take back what new subscribers get. */
  takeBacks: (() => Promise<void>)[]
}

export type Distribution = ReturnType<typeof createDistribution>

/**
 * The way of accepted messages to everyone who may have them: whoever stores `changes` in one commit hands the batch on to
 * every open connection, without waiting for any of them. What others get later they read from the journal.
 */
export function createDistribution(parts: {
  journal: Journal
  retained: RetainedMessages
  returnable: Returnable
  reading: Reading
  routes: Routes
  /** Second line of the ACL, asked once per message and set of permissions. */
  mayReceive: Access['mayReceive']
  clock: () => number
  metrics: Metrics
}) {
  const { journal, retained, returnable, reading, routes, mayReceive, clock, metrics } = parts
  /** Two lines that do not wait for each other: to QoS 0 and clean sessions, and to persistent sessions. */
  const live = createDeliveryLine()
  const following = createDeliveryLine()
  /** Positions by topic, those that wait included. */
  const sending = new Map<string, number[]>()
  /** Batches that nobody has got anything of yet, in the order of their commits. */
  const held = new Set<Batch>()
  let told: Entry[] = []
  journal.onAppended((entry) => {
    // Behind what else its commit has changed, the retained value above all.
    if (told.push(entry) === 1) queueMicrotask(deliverTold)
  })

  return {
    /**
     * A batch of messages that are stored with `alongside`, in one commit. It must be committed at once, with `underway`;
     * then comes exactly one of `deliver` and `takeBack`.
     */
    prepare(messages: readonly Message[], alongside: readonly Change[] = []): Batch {
      const now = clock()
      const at = journal.timeOf(now)
      const batch: Batch = {
        messages,
        publishes: messages.map(prepared),
        changes: [...alongside, ...journal.append(messages, at), ...retained.changes(messages, now, at)],
        now,
        at,
        underway: (first) => deliverEarly(batch, first),
        isEarly: false,
        takeBacks: [],
      }
      held.add(batch)
      return batch
    },

    /**
     * The batch is stored; its first message has this position. Resolves when every connected subscriber has been written to.
     */
    async deliver(batch: Batch, first: number): Promise<void> {
      held.delete(batch)
      const { messages, publishes, now, at } = batch
      const entries = journal.appended(messages, first, at)
      const rest: Delivery[] = []
      for (const [nth, entry] of entries.entries()) {
        const isOut = batch.isEarly && !entry.isReport
        if (!isOut) retained.show(entry, now, entry.position)
        keepReturnable(entry)
        retained.stored(entry)
        if (!isOut) rest.push(liveDelivery(entry, publishes[nth], entry.position))
      }
      await Promise.all([
        // Even if there is nothing left: behind what went out before the commit.
        live.deliver(rest),
        following.deliver(entries.map((entry, nth) => readingDelivery(entry, publishes[nth]))),
      ])
    },

    /** It is not stored, or that is not certain. */
    async takeBack(batch: Batch): Promise<void> {
      held.delete(batch)
      // Should the store not be readable either, the next event of the topic takes its place.
      await Promise.allSettled(batch.takeBacks.map((takeBack) => takeBack()))
    },

    /** Delivers to open connections only; for what need not, or cannot, be stored. */
    announce(messages: readonly Message[]): void {
      void live.deliver(messages.map((message) => liveDelivery({ ...message, qos: 0 })))
    },

    /** When something is accepted now. */
    now: (): number => journal.timeOf(clock()),

    /** Positions of messages on their way to those for whom nothing is stored, oldest first. */
    sending: (topic: string): readonly number[] => sending.get(topic) ?? [],

    /** Resolves when all that is on its way now has been sent. */
    sent: async (): Promise<void> => {
      await live.ended()
      await following.ended()
    },
  }

  /**
   * Sends the events of a batch to connected clients for whom nothing is stored, while the disk still writes the commit. The
   * order is that of the commits. Reports wait: they say that the event is stored.
   */
  function deliverEarly(batch: Batch, first: number): void {
    const [foremost] = held
    if (foremost !== batch) return
    held.delete(batch)
    batch.isEarly = true
    const deliveries: Delivery[] = []
    for (const [nth, message] of batch.messages.entries()) {
      if (message.isReport) continue
      const takeBack = retained.show(message, batch.now, first + nth)
      if (takeBack) batch.takeBacks.push(takeBack)
      deliveries.push(liveDelivery(message, batch.publishes[nth], first + nth))
    }
    void live.deliver(deliveries)
  }

  /** What other nodes distribute, to the clients of this one. */
  function deliverTold(): void {
    const entries = told
    told = []
    for (const entry of entries) keepReturnable(entry)
    const publishes = entries.map(prepared)
    void live.deliver(entries.map((entry, nth) => liveDelivery(entry, publishes[nth], entry.position)))
    void following.deliver(entries.map((entry, nth) => readingDelivery(entry, publishes[nth])))
  }

  function keepReturnable({ position, topic, qos, queue }: Entry): void {
    if (queue.keep === 'every') returnable.add({ position, topic, qos, expires: queue.expires })
  }

  /** What persistent sessions get. */
  function readingDelivery(entry: Entry, publish = prepared(entry)): Delivery {
    const send = () => {
      const holders = routes.persistent.match(entry.topic)
      const permitted = createPermittedCheck(entry.topic)
      const count = reading.deliver(
        entry,
        publish,
        holders.size === 0 ? [] : [...holders].filter(([session]) => permitted(session)),
      )
      if (count > 0) metrics.stages.sent(entry.position, count)
      return []
    }
    return { bytes: entry.payload.length, send }
  }

  /** For those who are connected and subscribed when its turn comes. */
  function liveDelivery(
    message: Pick<Message, 'topic' | 'payload' | 'qos'>,
    publish: Publish = prepared(message),
    position: number = unstored,
  ): Delivery {
    const { topic, payload, qos } = message
    const all = sending.get(topic) ?? []
    sending.set(topic, all)
    all.push(position)
    function* send() {
      retained.sent(topic, position)
      const recipients = recipientsOf(message)
      metrics.deliveries.inc(recipients.length)
      if (position !== unstored) metrics.stages.sent(position, recipients.length)
      yield* sendToEach(recipients, publish, qos)
      all.shift()
      if (all.length === 0) sending.delete(topic)
    }
    return { bytes: payload.length, send }
  }

  /** One entry per client, at the higher QoS, where filters overlap [MQTT-3.3.5-1]. */
  function recipientsOf({ topic, qos }: Pick<Message, 'topic' | 'qos'>): Recipient[] {
    const permitted = createPermittedCheck(topic)
    // Compared with undefined, because to see whether it is truthy V8 would have to fetch it.
    const isMeant = (session: Session) => session.outgoing !== undefined && permitted(session)
    const holders = routes.live.match(topic)
    const persistent = routes.persistent.match(topic)
    // A session with another filter above QoS 0 gets it from the journal.
    const recipients = [...holders].filter(
      ([session]) => isMeant(session) && (qos === 0 || session.clean || !persistent.has(session)),
    )
    if (qos > 0) return recipients
    // Nobody gets messages of QoS 0 from the journal.
    const others = [...persistent]
    return [...recipients, ...others.filter(([session]) => isMeant(session) && !holders.has(session))]
  }

  /** Sessions share few sets of permissions: the answer is found once for each. */
  function createPermittedCheck(topic: string): (session: Session) => boolean {
    let answers: Map<string, boolean> | undefined
    let lastPermission: string | undefined
    let lastAnswer = false
    return (session) => {
      const { permission } = session
      if (permission === lastPermission) return lastAnswer
      lastAnswer = answers?.get(permission) ?? mayReceive(session.principal, topic)
      answers ??= new Map()
      answers.set(permission, lastAnswer)
      lastPermission = permission
      return lastAnswer
    }
  }
}

/** The position of what is not stored. */
const unstored = 0

function prepared({ topic, payload }: Pick<Message, 'topic' | 'payload'>): Publish {
  return preparePublish(topic, payload)
}
