import { filterMatches } from '../event/topic.ts'
import { type Broker, connect } from './client.ts'
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
  topic: string
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
  const client = await connect(broker, login, `demo-${name}`, lost)
  client.on('message', (topic, payload) => {
    const event = JSON.parse(payload.toString())
    const key = keyOf(event.event, event.start ?? event.time, event.services[0].id)
    show({ subscriber: name, topic, event, ms: ledger.arrived(key, delivery(name, topic)) })
  })
  const [granted] = await client.subscribeAsync(filter, { qos: 1 })
  if (granted?.qos !== 1) throw new Error(`${name}: the subscription to ${filter} was denied`)
  return { close: () => client.endAsync() }
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
