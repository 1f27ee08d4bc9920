import type { Message } from '../../event/message.ts'
import type { Entry } from '../../journal/entry.ts'
import type { Journal } from '../../journal/journal.ts'
import type { RetainedMessages } from '../../journal/retained.ts'
import type { Audience } from '../../journal/retained-values.ts'
import type { Returnable } from '../../journal/returnable.ts'
import { sumPerTurn } from '../../listener/pacing.ts'
import { type CommitPart, commitTogether, type Prepare } from '../../store/commit-together.ts'
import type { Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { type Publish, preparePublish } from '../connection/frames.ts'
import type { Access } from '../login/access.ts'
import { pagesOf, persistentRecipientsOf, type Routes, recipientsOf } from '../session/subscriptions.ts'
import type { Bridges } from './bridges.ts'
import { createDeliveryQueue, type Delivery } from './delivery-queue.ts'
import type { Reading } from './reading.ts'
import { groupSize, sendToEach } from './writing.ts'

/**
 * Sends accepted messages to all connected subscribers, and waits for none. Persistent sessions that do not keep up
 * read the journal later.
 */
export function createDistribution(
  parts: { store: Store; journal: Journal; returnable: Returnable; clock: () => number } & DeliveryParts,
) {
  const { store, journal, retained, returnable, clock } = parts
  const live = createLiveDeliveries(parts)
  const persistent = createPersistentDeliveries(parts)
  /** The packets of commits of which none was sent yet, in the order of the commits. */
  // An array: docs/decisions, "Nothing that comes and goes with each event lies in a set or a map".
  const waiting: (readonly Publish[])[] = []
  /** Messages of other nodes that this node has not delivered yet. */
  let ofOthers: Entry[] = []
  // `queueMicrotask` takes several times as long.
  const applied = Promise.resolve()
  journal.onAppended((entry) => {
    keepReturnable(entry)
    // When the microtask runs, this node has applied the whole commit, also the retained value.
    if (ofOthers.push(entry) === 1) void applied.then(deliverOfOthers)
  })

  return {
    /**
     * Stores messages and `others` in one commit, and sends the messages. Resolves when all messages are sent. Rejects
     * if the commit fails, or if a recipient may lack a message.
     */
    distribute: (messages: readonly Message[], others: readonly Prepare[] = []): Promise<void> =>
      commitTogether(store, [...others, () => prepare(messages)]),

    /** Sends messages that are not stored. Connected clients get these messages at QoS 0. */
    announce(messages: readonly Message[]): void {
      void live.deliver(messages.map((message) => [{ ...message, qos: 0 }, undefined, 0]))
    },

    sending: live.sending,

    /** Resolves when the deliveries that run or wait now have all ended. `others`: only those to others than pages. */
    sent: async (to?: Audience): Promise<void> => {
      const queues = to === 'others' ? [live.others] : [live.others, live.pages, persistent]
      for (const { ended } of queues) await ended()
    },
  }

  function prepare(messages: readonly Message[]): CommitPart {
    const now = clock()
    const { at, changes: appending, stored } = journal.append(messages, now)
    const changes = appending.concat(retained.changes(messages, now, at))
    const publishes = messages.map((message) => preparePublish(message))
    let shown: ReturnType<typeof retained.show> | undefined
    let sent: Promise<void> | undefined
    waiting.push(publishes)

    return {
      changes,

      // Sends events while the disk writes: docs/decisions, "Delivered during the commit, acknowledged last". If an
      // earlier commit waits, this one waits too, to keep the order.
      begin(first) {
        if (waiting[0] === publishes) sendEvents(first)
      },

      end(how) {
        if (how === 'failed') {
          removeFrom(waiting, publishes)
          for (const end of shown ?? []) end(how)
          return
        }
        const entries = stored(how)
        if (!shown) sendEvents(how)
        for (const entry of entries) keepReturnable(entry)
        for (const end of shown ?? []) end(how)
        const rest = [sent, live.deliver(toSend(true, how)), persistent.deliver(entries, publishes)]
        return rest.some(Boolean) ? Promise.all(rest) : undefined
      },
    }

    function sendEvents(first: number): void {
      removeFrom(waiting, publishes)
      shown = retained.show(messages, now, first)
      sent = live.deliver(toSend(false, first))
    }

    /** The reports among the messages, or the events. */
    function toSend(reports: boolean, first: number): ToSend[] {
      const chosen: ToSend[] = []
      for (const [nth, message] of messages.entries())
        if (Boolean(message.isReport) === reports) chosen.push([message, publishes[nth], first + nth])
      return chosen
    }
  }

  /** Delivers to the clients of this node the messages that other nodes have appended. */
  function deliverOfOthers(): void {
    const entries = ofOthers
    ofOthers = []
    const publishes = entries.map((entry) => preparePublish(entry))
    void live.deliver(entries.map((entry, nth) => [entry, publishes[nth], entry.position]))
    void persistent.deliver(entries, publishes)
  }

  function keepReturnable({ position, topic, qos, queue }: Entry): void {
    if (queue.keep === 'every') returnable.add({ position, topic, qos, expires: queue.expires })
  }
}

/** A message for live subscribers. Position 0: the message is not stored. */
type ToSend = readonly [message: Message, publish: Publish | undefined, position: number]

interface DeliveryParts {
  bridges: Bridges
  retained: RetainedMessages
  reading: Reading
  routes: Routes
  /** Checks the ACL again at delivery, once per message and set of permissions. */
  mayReceive: Access['mayReceive']
  metrics: Metrics
}

/** If more deliveries than this wait for pages, only breaks that protect buffers are made (`delivery-queue.ts`). */
const maxWaitingForPages = 100

/** Delivers messages to live subscribers, to pages last. Other subscribers do not wait for pages, but publishers do. */
function createLiveDeliveries({ bridges, retained, routes, mayReceive, metrics }: DeliveryParts) {
  const others = createDeliveryQueue()
  const pages = createDeliveryQueue(maxWaitingForPages)
  const fitsInTurn = sumPerTurn(groupSize)
  /** Messages on their way, oldest first. */
  const sending: Record<Audience, { topic: string; position: number }[]> = { others: [], pages: [] }

  return {
    /** Resolves when the messages are sent. Undefined: they were sent at once. */
    deliver(messages: readonly ToSend[]): Promise<void> | undefined {
      if (messages.length === 0) return undefined
      let paged: Promise<void> | undefined
      // The callback runs in the turn that ends the delivery to the others, so both queues have the same order.
      const sent = others.deliver(
        messages.map((message) => deliveryOf('others', message)),
        () => {
          paged = toPages(messages)
        },
      )
      return sent?.then(() => paged) ?? paged
    },

    others,
    pages,
    /** Positions of a topic's messages on their way to pages, or to others, oldest first. */
    sending: (topic: string, to: Audience): readonly number[] =>
      sending[to].filter((each) => each.topic === topic).map(({ position }) => position),
  }

  function toPages(messages: readonly ToSend[]): Promise<void> | undefined {
    // A page that comes later gets the value as a retained message.
    if (routes.pages.isEmpty() && !pages.ended()) return undefined
    const events = messages.filter(([{ isReport }]) => !isReport)
    return pages.deliver(events.map((event) => deliveryOf('pages', event)))
  }

  function deliveryOf(
    to: Audience,
    [message, publish = preparePublish(message), position]: ToSend,
  ): Delivery {
    const { topic, payload, qos } = message
    const own = { topic, position }
    sending[to].push(own)
    return {
      bytes: payload.length,
      send() {
        retained.sent(topic, position, to)
        const recipients = (to === 'pages' ? pagesOf : recipientsOf)(message, routes, mayReceive)
        if (recipients.length > 0) metrics.deliveries.inc(recipients.length)
        if (position > 0) metrics.latency.sent(position, recipients.length)
        const toBridges = bridges.flagsOf(topic, position)
        return sendToEach(recipients, publish, qos, {
          fits: to === 'pages' ? fitsInTurn : undefined,
          toBridges,
        })
      },
      sent: () => removeFrom(sending[to], own),
    }
  }
}

/** Delivers messages to persistent sessions with a matching filter above QoS 0. */
function createPersistentDeliveries({ bridges, reading, routes, mayReceive, metrics }: DeliveryParts) {
  const queue = createDeliveryQueue()
  return {
    ...queue,
    deliver: (entries: readonly Entry[], publishes: readonly Publish[]): Promise<void> | undefined =>
      queue.deliver(entries.map((entry, nth) => deliveryOf(entry, publishes[nth]))),
  }

  function deliveryOf(entry: Entry, publish = preparePublish(entry)): Delivery {
    const send = () => {
      bridges.flagsOf(entry.topic, entry.position)
      const recipients = persistentRecipientsOf(entry.topic, routes, mayReceive)
      const count = reading.deliver(entry, publish, recipients)
      if (count > 0) metrics.latency.sent(entry.position, count)
      return undefined
    }
    return { bytes: entry.payload.length, send }
  }
}

function removeFrom<Item>(items: Item[], item: Item): void {
  const index = items.indexOf(item)
  if (index >= 0) items.splice(index, 1)
}
