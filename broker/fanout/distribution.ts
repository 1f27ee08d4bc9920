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
import type { HandedOut, Reading } from './reading.ts'
import { createDeliveryQueue, type Delivery, type Recipient, sendToEach } from './writing.ts'

/** The messages of one commit, from `prepare` to `deliver` or `takeBack`. */
interface Batch {
  readonly messages: readonly Message[]
  readonly publishes: readonly Publish[]
  /** All changes of the commit. */
  readonly changes: readonly Change[]
  readonly now: number
  /** Time of acceptance: `now`, but not before the time of the newest message (`journal.timeOf`). */
  readonly at: number
  /** Callback for `store.commit`. The store calls it with the first position when it begins to write the commit. */
  readonly underway: (first: number) => void
  /** The first position of the batch, if this node sent the events of the batch before they were stored. */
  early?: number
}

export type Distribution = ReturnType<typeof createDistribution>

/**
 * Sends accepted messages to all connected subscribers that may receive them, and waits for no subscriber. The messages
 * of one commit are a batch: `prepare` makes the batch, the caller commits its `changes`, `deliver` sends its messages.
 * Persistent sessions that do not keep up read the messages from the journal later.
 */
export function createDistribution(
  parts: { journal: Journal; returnable: Returnable; clock: () => number } & DeliveryParts,
) {
  const { journal, retained, returnable, clock } = parts
  /** Two queues that do not wait for each other. `live` is for QoS 0 and clean sessions, `persistent` for the rest. */
  const live = createDeliveryQueue()
  const persistent = createDeliveryQueue()
  const deliveries = createDeliveries(parts)
  const waiting = createWaitingBatches()
  /** Messages that other nodes have appended to the journal, and that this node has not delivered yet. */
  let ofOthers: Entry[] = []
  journal.onAppended((entry) => {
    // Delivers the entry when this node has applied the rest of the commit, above all the retained value.
    if (ofOthers.push(entry) === 1) queueMicrotask(deliverOfOthers)
  })

  return {
    /**
     * Makes a batch of messages. Its commit also has the changes `alongside`. The caller commits the `changes` of the
     * batch at once, with `underway` as callback, and then calls exactly one of `deliver` and `takeBack`.
     */
    prepare(messages: readonly Message[], alongside: readonly Change[] = []): Batch {
      const now = clock()
      const at = journal.timeOf(now)
      const batch: Batch = {
        messages,
        publishes: messages.map(prepared),
        changes: alongside.concat(journal.append(messages, at), retained.changes(messages, now, at)),
        now,
        at,
        underway: (first) => deliverEarly(batch, first),
      }
      waiting.add(batch)
      return batch
    },

    /**
     * Call it when the batch is stored. `first`: position of its first message. Resolves when all messages are sent.
     */
    async deliver(batch: Batch, first: number): Promise<void> {
      waiting.remove(batch)
      const { messages, publishes, now, at } = batch
      const entries = journal.appended(messages, first, at)
      const rest: Delivery[] = []
      for (const [nth, entry] of entries.entries()) {
        const isOut = batch.early !== undefined && !entry.isReport
        if (!isOut) retained.show(entry, now, entry.position)
        keepReturnable(entry)
        retained.settle(entry, entry.position, true)
        if (!isOut) rest.push(deliveries.live(entry, publishes[nth], entry.position))
      }
      await Promise.all([
        // Called even if `rest` is empty, because the call waits until the early messages of the batch are sent.
        live.deliver(rest),
        persistent.deliver(entries.map((entry, nth) => deliveries.persistent(entry, publishes[nth]))),
      ])
    },

    /** Call it when the commit has failed: the batch is not stored, or the outcome is unknown. */
    takeBack(batch: Batch): void {
      waiting.remove(batch)
      if (batch.early === undefined) return
      for (const [nth, message] of batch.messages.entries())
        retained.settle(message, batch.early + nth, false)
    },

    /** Sends messages only to connected clients, at QoS 0: for messages that need not, or cannot, be stored. */
    announce(messages: readonly Message[]): void {
      void live.deliver(messages.map((message) => deliveries.live({ ...message, qos: 0 })))
    },

    /** The time of a message that is accepted now. */
    now: (): number => journal.timeOf(clock()),

    sending: deliveries.sending,

    /** Resolves when all deliveries that have begun or wait at this moment have ended. */
    sent: async (): Promise<void> => {
      await live.ended()
      await persistent.ended()
    },
  }

  /**
   * Sends the events of a batch to live subscribers (QoS 0, or clean session) while the disk still writes the commit.
   * To keep the order of the commits, does so only for the first waiting batch. Reports wait for the commit, because
   * they say that the event is stored.
   */
  function deliverEarly(batch: Batch, first: number): void {
    if (!waiting.isForemost(batch)) return
    waiting.remove(batch)
    batch.early = first
    const early: Delivery[] = []
    for (const [nth, message] of batch.messages.entries()) {
      if (message.isReport) continue
      retained.show(message, batch.now, first + nth)
      early.push(deliveries.live(message, batch.publishes[nth], first + nth))
    }
    void live.deliver(early)
  }

  /** Delivers to the clients of this node the messages that other nodes have appended. */
  function deliverOfOthers(): void {
    const entries = ofOthers
    ofOthers = []
    for (const entry of entries) keepReturnable(entry)
    const publishes = entries.map(prepared)
    void live.deliver(entries.map((entry, nth) => deliveries.live(entry, publishes[nth], entry.position)))
    void persistent.deliver(entries.map((entry, nth) => deliveries.persistent(entry, publishes[nth])))
  }

  function keepReturnable({ position, topic, qos, queue }: Entry): void {
    if (queue.keep === 'every') returnable.add({ position, topic, qos, expires: queue.expires })
  }
}

/**
 * Batches of which no message was sent yet, in the order of their commits. An array, not a set: a set that grows and
 * shrinks with each event leaves old tables behind. The garbage collector takes these tables, and all batches in them,
 * for alive.
 */
function createWaitingBatches() {
  const batches: Batch[] = []
  return {
    add: (batch: Batch): void => void batches.push(batch),
    isForemost: (batch: Batch): boolean => batches[0] === batch,
    remove(batch: Batch): void {
      const index = batches.indexOf(batch)
      if (index >= 0) batches.splice(index, 1)
    },
  }
}

interface DeliveryParts {
  retained: RetainedMessages
  reading: Reading
  routes: Routes
  handedOut: HandedOut
  /** Checks the ACL again at delivery, as at SUBSCRIBE. Called once per message and set of permissions. */
  mayReceive: Access['mayReceive']
  metrics: Metrics
}

/** Makes the deliveries of a message: one to live subscribers, one to persistent sessions. */
function createDeliveries(parts: DeliveryParts) {
  const { retained, reading, routes, handedOut, mayReceive, metrics } = parts
  /** Messages that this node is sending, or is about to send, to live subscribers. Oldest first. */
  const sending: { topic: string; position: number }[] = []

  return {
    /** Makes the delivery to live subscribers: clients that are connected and subscribed at the moment of sending. */
    live(
      message: Pick<Message, 'topic' | 'payload' | 'qos'>,
      publish: Publish = prepared(message),
      position: number = noPosition,
    ): Delivery {
      const { topic, payload, qos } = message
      const own = { topic, position }
      sending.push(own)
      function* send() {
        retained.sent(topic, position)
        const recipients = recipientsOf(message, routes, mayReceive)
        if (recipients.length > 0) metrics.deliveries.inc(recipients.length)
        if (position !== noPosition) metrics.latency.sent(position, recipients.length)
        yield* sendToEach(recipients, publish, qos)
        sending.splice(sending.indexOf(own), 1)
      }
      return { bytes: payload.length, send }
    },

    /** Makes the delivery to persistent sessions with a matching filter above QoS 0. */
    persistent(entry: Entry, publish = prepared(entry)): Delivery {
      const { topic, position } = entry
      const send = () => {
        handedOut.upTo = Math.max(handedOut.upTo, position)
        const holders = routes.persistent.match(topic)
        if (holders.size === 0) return []
        const permitted = createPermittedCheck(topic, mayReceive)
        const count = reading.deliver(
          entry,
          publish,
          [...holders].filter(([session]) => permitted(session)),
        )
        if (count > 0) metrics.latency.sent(position, count)
        return []
      }
      return { bytes: entry.payload.length, send }
    },

    /** Positions of the messages on a topic that this node is sending, or about to send, live. Oldest first. */
    sending: (topic: string): readonly number[] =>
      sending.filter((each) => each.topic === topic).map(({ position }) => position),
  }
}

/** The clients that get a message live: each once, at the highest QoS of its matching filters [MQTT-3.3.5-1]. */
function recipientsOf(
  { topic, qos }: Pick<Message, 'topic' | 'qos'>,
  routes: Routes,
  mayReceive: Access['mayReceive'],
): Recipient[] {
  const permitted = createPermittedCheck(topic, mayReceive)
  // Compares with undefined, because V8 would have to fetch the object to see whether it is truthy.
  const isMeant = (session: Session) => session.outgoing !== undefined && permitted(session)
  const holders = routes.live.match(topic)
  const persistent = routes.persistent.match(topic)
  // A persistent session that has another matching filter above QoS 0 gets the message by the `persistent` delivery.
  const recipients = [...holders].filter(
    ([session]) => isMeant(session) && (qos === 0 || session.clean || !persistent.has(session)),
  )
  if (qos > 0) return recipients
  // The `persistent` delivery skips messages of QoS 0. So persistent sessions get these messages live.
  const others = [...persistent]
  return [...recipients, ...others.filter(([session]) => isMeant(session) && !holders.has(session))]
}

/** Returns a check that asks `mayReceive` once per set of permissions, because many sessions share a set. */
function createPermittedCheck(
  topic: string,
  mayReceive: Access['mayReceive'],
): (session: Session) => boolean {
  let answers: Map<string, boolean> | undefined
  let lastPermission: string | undefined
  let lastAnswer = false
  return (session) => {
    const { permission } = session
    if (permission === lastPermission) return lastAnswer
    const answer = answers?.get(permission) ?? mayReceive(session.principal, topic)
    // The first permission needs no map: for most messages there is only one.
    if (lastPermission !== undefined) answers ??= new Map([[lastPermission, lastAnswer]])
    answers?.set(permission, answer)
    lastPermission = permission
    lastAnswer = answer
    return answer
  }
}

/** The position of a message that is not stored. */
const noPosition = 0

function prepared({ topic, payload }: Pick<Message, 'topic' | 'payload'>): Publish {
  return preparePublish(topic, payload)
}
