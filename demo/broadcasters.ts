import { connectPublisher, EventRefused, type Remark } from '../client/node.ts'
import { kindByName } from '../event/kind.ts'
import { radioTopic } from '../event/topic.ts'
import { type Broker, optionsFor } from './client.ts'
import type { DemoEvent } from './events.ts'
import { keyOf, type Ledger, type Verdict } from './ledger.ts'
import type { Login } from './node.ts'
import { deliveriesOf, type Subscriber } from './subscribers.ts'

/** The institution that events belong to. */
export interface Institution {
  id: string
  title: string
  acronym: string
}

/** What the hub has decided about an event. */
export interface Decision {
  event: DemoEvent
  outcome: string
  errors: readonly Remark[]
}

/** Connects the broadcaster of one institution. Resolves when the hub answers it. */
export async function startBroadcaster(
  institution: Institution,
  login: Login,
  parts: {
    broker: Broker
    ledger: Ledger
    subscribers: readonly Subscriber[]
    show: (institution: Institution, decision: Decision) => void
    lost: (reason: string) => void
  },
) {
  const { broker, ledger, subscribers, show, lost } = parts
  const publisher = connectPublisher({ ...optionsFor(broker, login, lost), institution: institution.id })
  // The times of the events must not include that of the log-in.
  await decisionOf({ event: '', services: [] }, publisher.check)

  return {
    /** Sends an event and does not wait: the ledger notes its outcome. */
    publish(event: DemoEvent, expected: Verdict): void {
      const kind = kindByName.get(event.event)
      if (!kind) throw new Error(`${event.event} is no event`)
      const time = event[kind.timeField]
      const key = keyOf(event.event, time, event.services[0]?.id)
      const topics = event.services.map(({ id }) => radioTopic(id, kind))
      const what = `${kind.suffix} of ${event.services[0]?.id} at ${time}`
      const entry = { what, expected, deliveries: deliveriesOf(subscribers, topics) }
      const decided = ledger.publish(key, entry, () => decisionOf(event, publisher.publish))
      decided.then(
        (decision) => show(institution, decision),
        (error: Error) => lost(`${institution.title}: ${error.message}`),
      )
    },

    close: () => publisher.close(),
  }
}

/** Rejects if the hub could not decide. */
async function decisionOf(
  event: DemoEvent,
  send: (event: DemoEvent) => Promise<{ outcome: string }>,
): Promise<Decision> {
  try {
    const { outcome } = await send(event)
    return { event, outcome, errors: [] }
  } catch (error) {
    if (!(error instanceof EventRefused)) throw error
    return { event, outcome: error.outcome, errors: error.errors }
  }
}
