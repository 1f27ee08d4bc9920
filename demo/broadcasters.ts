import { kindByName } from '../event/kind.ts'
import { feedbackTopic, inboxTopic, radioTopic } from '../event/topic.ts'
import type { Report } from '../validator/messages.ts'
import { type Broker, connect } from './client.ts'
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

/** Connects the broadcaster of one institution. Resolves when it is subscribed to its feedback. */
export async function startBroadcaster(
  institution: Institution,
  login: Login,
  parts: {
    broker: Broker
    ledger: Ledger
    subscribers: readonly Subscriber[]
    show: (institution: Institution, report: Report) => void
    lost: (reason: string) => void
  },
) {
  const { broker, ledger, subscribers, show, lost } = parts
  const client = await connect(broker, login, `demo-${institution.acronym}`, lost)
  client.on('message', (_topic, payload) => {
    const report: Report = JSON.parse(payload.toString())
    ledger.reported(keyOf(report.event, report.eventTime, report.services[0]), report.outcome)
    show(institution, report)
  })
  // Subscribes before the first event, because feedback is not retained.
  await client.subscribeAsync(feedbackTopic(institution.id), { qos: 1 })

  return {
    /** Sends an event and does not wait: the ledger notes its outcome. */
    publish(event: DemoEvent, expected: Verdict): void {
      const kind = kindByName.get(event.event)
      if (!kind) throw new Error(`${event.event} is no event`)
      const time = event[kind.timeField]
      const key = keyOf(event.event, time, event.services[0]?.id)
      const topics = event.services.map(({ id }) => radioTopic(id, kind))
      const payload = JSON.stringify(event)
      const what = `${kind.suffix} of ${event.services[0]?.id} at ${time}`
      ledger.sent(key, what, expected, deliveriesOf(subscribers, topics))
      client.publishAsync(inboxTopic(institution.id), payload, { qos: 1 }).then(
        () => ledger.acknowledged(key),
        (error: Error) => lost(`${institution.title}: ${error.message}`),
      )
    },

    close: () => client.endAsync(),
  }
}
