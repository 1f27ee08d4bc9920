import { type Client, type Opening, openClient } from './client.ts'
import type { Marked } from './events.ts'
import type { Place } from './hazard.ts'
import type { Subject } from './subject.ts'

/** Logs in a client that may publish for the institution of a place. */
export async function openPublisher({ subject, institution }: Place): Promise<Client> {
  return openUser(subject, { login: await subject.publisher(institution) })
}

/** Logs in a client and subscribes it to these filters. */
export async function openSubscriber(
  { subject }: Pick<Place, 'subject'>,
  filters: readonly string[],
  qos: 0 | 1,
): Promise<Client> {
  const client = await openUser(subject, { login: await subject.reader() })
  const granted = await client.subscribe(filters, qos)
  if (granted?.length !== filters.length) throw new Error('a subscription was not answered')
  return client
}

/** Logs a client in. Throws if the log-in is refused, because the hazard would seem absent. */
export async function openUser(subject: Subject, opening: Opening): Promise<Client> {
  const client = await openClient(subject.address(), opening)
  const { connack } = client
  if (connack?.returnCode !== 0) throw new Error(`a log-in was refused: ${connack?.returnCode}`)
  return client
}

/**
 * Publishes events at QoS 1, in groups of `atOnce`. Returns the acknowledged events. `past`: on Aedes, the events
 * bypass the validation (`Subject.entry`).
 */
export async function publish(
  place: Place,
  client: Client,
  events: readonly Marked[],
  of: { past?: boolean; atOnce?: number } = {},
): Promise<Marked[]> {
  const { past = false, atOnce = 50 } = of
  const before = client.count('puback')
  for (let start = 0; start < events.length; start += atOnce) {
    client.send(
      ...events.slice(start, start + atOnce).map(({ topic, payload }, index) => ({
        cmd: 'publish' as const,
        qos: 1 as const,
        dup: false,
        retain: past,
        payload,
        topic: past ? place.subject.entry(topic, place.institution) : `inbox/${place.institution}`,
        messageId: start + index + 1,
      })),
    )
    const due = Math.min(start + atOnce, events.length)
    if (!(await client.until(() => client.count('puback') - before >= due || undefined))) break
  }
  const acknowledged = new Set(
    client.packets
      .filter(({ cmd }) => cmd === 'puback')
      .slice(before)
      .map(({ messageId }) => messageId),
  )
  return events.filter((_, index) => acknowledged.has(index + 1))
}

let lastSession = 0

/** Makes a persistent session at QoS 1 and logs out. `comeBack` logs in again. */
export async function leaveSession({ subject }: Pick<Place, 'subject'>, filters: readonly string[]) {
  const opening = { login: await subject.reader(), clientId: `away-${++lastSession}`, clean: false }
  const client = await openUser(subject, opening)
  await client.subscribe(filters, 1)
  await client.leave()
  return {
    ...opening,
    comeBack: (of: { acknowledges?: boolean } = {}) => openClient(subject.address(), { ...opening, ...of }),
  }
}
