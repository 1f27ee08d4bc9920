import { type AnyMessage, connectSubscriber, type Kind } from '../client/node.ts'
import { kindByName } from '../event/kind.ts'
import { filterMatches, radioTopic } from '../event/topic.ts'
import { type Broker, optionsFor } from './client.ts'
import { keyOf, type Ledger } from './ledger.ts'
import type { Login } from './node.ts'

/** A subscriber of the demonstration: the name on the screen, and its topic filter. */
export interface Subscriber {
  name: string
  filter: string
}

/** A message as a subscriber shows it. */
export interface Arrival {
  subscriber: string
  kind: Kind
  livestreamId: string
  event: Record<string, unknown>
  /**
   * Milliseconds from the publish call to the arrival. Undefined: the arrival is a repetition, or the ledger did not
   * await it.
   */
  ms: number | undefined
}

/** Connects a subscriber; resolves when its subscription is granted. */
export async function startSubscriber(
  { name, filter }: Subscriber,
  login: Login,
  parts: { broker: Broker; ledger: Ledger; show: (arrival: Arrival) => void; lost: (reason: string) => void },
) {
  const { broker, ledger, show, lost } = parts
  const subscriber = connectSubscriber({ ...optionsFor(broker, login, lost), filters: [filter] })
  const arrived = ({ kind, livestreamId, event }: AnyMessage) => {
    const { event: eventName, services } = event
    const time = 'start' in event ? event.start : 'time' in event ? event.time : undefined
    const eventKind = kindByName.get(eventName ?? '')
    if (!eventKind) throw new Error(`${eventName} is no event`)
    const to = delivery(name, radioTopic(livestreamId, eventKind))
    const ms = ledger.arrived(keyOf(eventName, time, services?.[0]?.id), to)
    show({ subscriber: name, kind, livestreamId, event: { ...event }, ms })
  }
  for (const kind of ['playing', 'next', 'control', 'data'] as const) subscriber.on(kind, arrived)
  await new Promise<void>((resolve) => {
    subscriber.on('state', (state) => {
      if (state === 'live') resolve()
    })
  })
  return subscriber
}

/** The deliveries to expect when the hub publishes an event on these topics. */
export function deliveriesOf(subscribers: readonly Subscriber[], topics: readonly string[]): string[] {
  return subscribers.flatMap(({ name, filter }) =>
    topics.filter((topic) => filterMatches(filter, topic)).map((topic) => delivery(name, topic)),
  )
}

function delivery(subscriber: string, topic: string): string {
  return `${subscriber} on ${topic}`
}
