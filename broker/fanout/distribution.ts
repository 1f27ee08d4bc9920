import { setImmediate as nextTurn } from 'node:timers/promises'
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
import { lowerQos, type Publish, type PublishFlags, preparePublish } from '../connection/frames.ts'
import type { Qos } from '../connection/protocol.ts'
import type { Access } from '../login/access.ts'
import { nextPacketId, type Session } from '../session/session.ts'
import type { Recipient, Routes } from '../session/subscriptions.ts'
import { pagesOf, persistentRecipientsOf, recipientsOf } from '../session/subscriptions.ts'
import type { Bridges } from './bridges.ts'
import type { Reading } from './reading.ts'

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
    const publishes = messages.map(preparePublish)
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
    const publishes = entries.map(preparePublish)
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

/** Maximum number of bytes that the node sends to each subscriber without a break. */
const maxAtOnce = 256 * 1024
/** If more than this number of calls wait, only breaks that protect buffers are made: each break delays messages. */
const maxWaiting = 8
/** The same for pages. Their breaks delay no other subscriber. */
const maxWaitingForPages = 100

/** The delivery of one message to all its recipients. */
export interface Delivery {
  bytes: number
  /**
   * Sends the message. Undefined: it is sent wholly. Else each step of the iterator sends a part, and a break may come
   * before each step.
   */
  send: () => Iterator<void> | undefined
  /** Runs when the message is sent. */
  sent?: () => void
}

/**
 * Carries out deliveries in the order of the calls. Breaks keep the buffers of fast readers from overflowing:
 * docs/decisions, "An event for many goes out in several turns".
 */
export function createDeliveryQueue(most = maxWaiting) {
  /** The last unfinished call of `deliver`. Undefined: all calls have ended. */
  let last: Promise<void> | undefined
  let waiting = 0
  const fitsInTurn = sumPerTurn(maxAtOnce)

  return {
    /** Calls `made` after the last delivery, in the same turn, and then resolves. Undefined: all that is done at once. */
    deliver(deliveries: readonly Delivery[], made?: () => void): Promise<void> | undefined {
      const work: Work = { deliveries, made, next: 0, rest: undefined }
      try {
        if (!last && proceed(work) === 'done') return undefined
      } catch (error) {
        // The driver of the store calls this during its write, which must go on.
        return Promise.reject(error)
      }
      const own = finish(work, last).finally(() => {
        waiting--
        if (last === own) last = undefined
      })
      last = own
      waiting++
      return own
    },

    /** Resolves when the deliveries that are under way now have ended; undefined: there are none. */
    ended: (): Promise<void> | undefined => last,
  }

  async function finish(work: Work, before: Promise<void> | undefined): Promise<void> {
    await (before ? Promise.allSettled([before]) : nextTurn())
    for (let step = proceed(work); step !== 'done'; step = proceed(work)) {
      if (step === 'full' || waiting <= most) await nextTurn()
    }
  }

  /** Makes the deliveries up to the next break. `full`: without this break, buffers may overflow. */
  function proceed(work: Work): 'break' | 'full' | 'done' {
    for (;;) {
      const delivery = work.deliveries[work.next]
      if (!delivery) break
      if (work.rest) {
        if (!work.rest.next().done) return 'break'
      } else {
        if (!fitsInTurn(delivery.bytes)) return 'full'
        work.rest = delivery.send()
        if (work.rest) return 'break'
      }
      delivery.sent?.()
      work.rest = undefined
      work.next++
    }
    work.made?.()
    return 'done'
  }
}

/** Deliveries that are made in order. `next`: index of the first unfinished delivery. `rest`: its remaining steps. */
interface Work {
  deliveries: readonly Delivery[]
  made: (() => void) | undefined
  next: number
  rest: Iterator<void> | undefined
}

/** This many subscribers are made ready before the first write: the processor then fetches their fields together. */
const groupSize = 16
/** This many subscribers get a message before the first break. */
const withoutBreak = 128
/** Maximum number of messages in flight to a clean session. One more closes the connection. */
const maxInFlight = 10_000

/**
 * Sends a message to live subscribers. Each subscriber gets it at the granted QoS, but at most at `highest`. Returns
 * undefined, or an iterator for those behind the first break: each of its steps sends up to the next break. With `fits`,
 * a break comes before each group that does not fit into the turn. Groups and breaks save CPU time: docs/decisions, "An
 * event for many goes out in several turns".
 */
export function sendToEach(
  recipients: readonly Recipient[],
  publish: Publish,
  highest: Qos,
  { fits, toBridges }: { fits?: ((writes: number) => boolean) | undefined; toBridges?: PublishFlags } = {},
): Iterator<void> | undefined {
  const start = sendFrom(0)
  return start < recipients.length ? restFrom(start) : undefined

  /** Sends up to the next break. Returns the number of recipients before it. */
  function sendFrom(first: number, isAfterBreak = false): number {
    for (let start = first; start < recipients.length; start += groupSize) {
      const group = recipients.slice(start, start + groupSize)
      const isLate = start >= withoutBreak && group.some(([, granted]) => lowerQos(granted, highest) === 0)
      const isBehindBreak = isAfterBreak && start === first
      if ((fits ? !fits(group.length) : isLate) && !isBehindBreak) return start
      sendToGroup(group, publish, highest, toBridges)
    }
    return recipients.length
  }

  function* restFrom(start: number): Generator<void> {
    for (let at = sendFrom(start, true); at < recipients.length; at = sendFrom(at, true)) yield
  }
}

const noFlags: PublishFlags = {}

/** Sends a message to a few recipients, without a break. `toBridges`: the flags for bridges. */
function sendToGroup(group: readonly Recipient[], publish: Publish, highest: Qos, toBridges = noFlags): void {
  const flagsOf = ({ isBridge }: Session) => (isBridge ? toBridges : noFlags)
  const packetIds = group.map(([session, granted]) =>
    makeReady(session, publish, lowerQos(granted, highest), flagsOf(session)),
  )
  for (const [index, [session, granted]] of group.entries()) {
    const packetId = packetIds[index]
    if (packetId === undefined) continue
    const qos = lowerQos(granted, highest)
    session.outgoing?.write(publish.packet(qos, flagsOf(session), packetId), qos > 0)
  }
}

/** Returns a packet for one session, ready to be written. Undefined: the message cannot be sent. */
export function packetFor(
  session: Session,
  publish: Publish,
  qos: Qos,
  flags: PublishFlags,
): Buffer | undefined {
  const packetId = makeReady(session, publish, qos, flags)
  return packetId === undefined ? undefined : publish.packet(qos, flags, packetId)
}

/** Returns the packet identifier (0 at QoS 0). Undefined: the message cannot be sent. */
function makeReady(session: Session, publish: Publish, qos: Qos, flags: PublishFlags): number | undefined {
  if (!session.outgoing?.accepts(publish.packet(qos, flags).length, qos)) return undefined
  if (qos === 0) return 0
  if (session.inFlight.size >= maxInFlight) {
    session.connection?.cut('slow', `${maxInFlight} messages not acknowledged`)
    return undefined
  }
  const packetId = nextPacketId(session)
  session.inFlight.set(packetId, qos === 1 ? 'qos1' : 'qos2')
  return packetId
}
