import type { Message } from '../../event/message.ts'
import type { Entry } from '../../journal/entry.ts'
import type { Journal } from '../../journal/journal.ts'
import type { RetainedMessages } from '../../journal/retained.ts'
import type { Returnable } from '../../journal/returnable.ts'
import type { Change, Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { type Publish, preparePublish } from '../connection/wire.ts'
import type { Session } from '../session/session.ts'
import type { Routes } from '../session/subscriptions.ts'
import { createPortions, type Portion } from './portions.ts'
import type { Reading } from './reading.ts'
import { type Recipient, sendToEach } from './unstored.ts'

/** A message on its way. */
interface Delivery {
  message: Message
  publish: Publish
  /** New subscribers get it. */
  isShown: boolean
  /** Where it is what they get: how to take it back. */
  takeBack: (() => Promise<void>) | undefined
  /** It is on its way to those for whom nothing is stored. */
  isLive: boolean
}

export type Distribution = ReturnType<typeof createDistribution>

/**
 * The way of an accepted message to everyone who may have it: append it to the journal, then hand it to every open
 * connection without waiting for any of them. What others get later they read from the journal.
 */
export function createDistribution(parts: {
  store: Store
  journal: Journal
  retained: RetainedMessages
  returnable: Returnable
  reading: Reading
  routes: Routes
  /** Second line of the ACL, asked once per message and set of permissions. */
  mayReceive: (session: Session, topic: string) => boolean
  clock: () => number
  metrics: Metrics
}) {
  const { store, journal, retained, returnable, reading, routes, mayReceive, clock, metrics } = parts
  /** Two lines that do not wait for each other: to QoS 0 and clean sessions, and to persistent sessions. */
  const live = createPortions()
  const following = createPortions()
  /** Positions by topic, those that wait included. */
  const sending = new Map<string, number[]>()
  /** Batches that nobody has got anything of yet, in the order of their commits. */
  const held = new Set<readonly Delivery[]>()
  let told: Entry[] = []
  journal.onAppended((entry) => {
    // Behind what else its commit has changed, the retained value above all.
    if (told.push(entry) === 1) queueMicrotask(deliverTold)
  })

  return {
    /**
     * Stores the messages and `alongside` in one commit, and delivers: to those for whom nothing is stored while it is on
     * its way to the disk, to the others when it is safe. Resolves when every connected subscriber has been written to;
     * rejects when it is not certain that everybody has it, mostly because nothing was stored. `stored`: see `Distribute`.
     */
    async distribute(
      messages: readonly Message[],
      alongside: readonly Change[] = [],
      stored: (first: number) => void = () => undefined,
    ): Promise<void> {
      const now = clock()
      const at = journal.timeOf(now)
      const changes = [...alongside, ...journal.append(messages, at), ...retained.changes(messages, now, at)]
      const batch = messages.map(toDelivery)
      const underway = (first: number) => {
        const [foremost] = held
        if (foremost !== batch) return
        held.delete(batch)
        const isEarly = ({ message }: Delivery) => !message.isReport
        for (const [nth, delivery] of batch.entries()) if (isEarly(delivery)) show(delivery, now, first + nth)
        void live.deliver(
          batch.flatMap((each, nth) => (isEarly(each) ? [livePortion(each, first + nth)] : [])),
        )
      }
      held.add(batch)
      let first: number
      try {
        first = await store.commit(changes, underway)
      } catch (error) {
        // Should the store not be readable either, the next event of the topic takes its place.
        await Promise.allSettled(batch.map(({ takeBack }) => takeBack?.()))
        throw error
      } finally {
        held.delete(batch)
      }
      stored(first)
      await deliverRest(batch, journal.appended(messages, first, at), now)
    },

    /** Delivers to open connections only; for what need not, or cannot, be stored. */
    announce(messages: readonly Message[]): void {
      const portions = messages.map((message) =>
        openPortion({ ...message, qos: 0 }, preparePublish(message.topic, message.payload), unstored),
      )
      void live.deliver(portions)
    },

    /** Positions of messages on their way to those for whom nothing is stored, oldest first. */
    sending: (topic: string): readonly number[] => sending.get(topic) ?? [],

    /** Resolves when all that is on its way now has been sent. */
    sent: async (): Promise<void> => {
      await live.ended()
      await following.ended()
    },
  }

  /** To everybody who has not got it yet. */
  async function deliverRest(
    batch: readonly Delivery[],
    entries: readonly Entry[],
    now: number,
  ): Promise<void> {
    const rest: Portion[] = []
    for (const [nth, delivery] of batch.entries()) {
      const entry = entries[nth]
      if (!entry) continue
      show(delivery, now, entry.position)
      keepReturnable(entry)
      retained.stored(entry)
      if (!delivery.isLive) rest.push(livePortion(delivery, entry.position))
    }
    await Promise.all([
      // Even if there is nothing left: behind what went out before the commit.
      live.deliver(rest),
      following.deliver(entries.map((entry, nth) => readingPortion(entry, batch[nth]?.publish))),
    ])
  }

  /** What other nodes distribute, to the clients of this one. */
  function deliverTold(): void {
    const entries = told
    told = []
    for (const entry of entries) keepReturnable(entry)
    const publishes = entries.map(({ topic, payload }) => preparePublish(topic, payload))
    void live.deliver(
      entries.map((entry, nth) => openPortion(entry, publishes[nth] ?? prepared(entry), entry.position)),
    )
    void following.deliver(entries.map((entry, nth) => readingPortion(entry, publishes[nth])))
  }

  function keepReturnable({ position, topic, qos, queue }: Entry): void {
    if (queue.keep === 'every') returnable.add({ position, topic, qos, expires: queue.expires })
  }

  /** In the order of the commits, which is that of the store. */
  function show(delivery: Delivery, now: number, position: number): void {
    if (delivery.isShown) return
    delivery.isShown = true
    delivery.takeBack = retained.show(delivery.message, now, position)
  }

  /** What those get for whom nothing is stored. */
  function livePortion(delivery: Delivery, position: number): Portion {
    delivery.isLive = true
    return openPortion(delivery.message, delivery.publish, position)
  }

  /** What persistent sessions get. */
  function readingPortion(entry: Entry, publish = prepared(entry)): Portion {
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
  function openPortion(
    message: Pick<Message, 'topic' | 'payload' | 'qos'>,
    publish: Publish,
    position: number,
  ): Portion {
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
      lastAnswer = answers?.get(permission) ?? mayReceive(session, topic)
      answers ??= new Map()
      answers.set(permission, lastAnswer)
      lastPermission = permission
      return lastAnswer
    }
  }
}

/** The position of what is not stored. */
const unstored = 0

function toDelivery(message: Message): Delivery {
  return { message, publish: prepared(message), isShown: false, takeBack: undefined, isLive: false }
}

function prepared({ topic, payload }: Pick<Message, 'topic' | 'payload'>): Publish {
  return preparePublish(topic, payload)
}
