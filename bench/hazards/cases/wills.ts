import { playing } from '../../../test/events.ts'
import { type Client, type Opening, openClient } from '../client.ts'
import { type Marked, marksOf, tracks } from '../events.ts'
import { type Hazard, type Place, seen } from '../hazard.ts'
import { leaveSession, openSubscriber } from '../users.ts'

/* Hazards of wills, which a broker publishes when a connection breaks. */

export const wildcardWill: Hazard = {
  about:
    'Log-ins with a will for a topic that has a wildcard in it, which break: such wills that a subscriber gets.',
  async look(place) {
    const { subject, livestream } = place
    const subscriber = await openSubscriber(place, [`radio/${livestream.id}/#`], 0)
    const topics = [`radio/${livestream.id}/+/playing`, `radio/${livestream.id}/#`]
    for (const topic of topics) await breakWithWill(place, await subject.publisher(place.institution), topic)
    await subscriber.quiet()
    return seen(subscriber.messages().filter(({ topic }) => topics.includes(topic)).length, topics.length)
  },
}

/** Every four heartbeats, here 800 ms, an Aedes broker publishes the wills of ended brokers. */
const aedes = { heartbeatInterval: 200 }
const sweepMs = 5000

export const forbiddenWill: Hazard = {
  about:
    'A client logs in with a will that it may not publish. Its broker is killed, and the next one publishes the wills that are ' +
    'left: such wills that a subscriber gets.',
  alone: true,
  aedes,
  async look(place) {
    const { subject, livestream } = place
    const [event] = tracks(livestream, 1)
    if (!event) throw new Error('there is no event')
    const session = await leaveSession(place, [event.topic])
    await openClient(subject.address(), { login: await subject.reader(), will: willOf(event, event.topic) })
    await subject.restart()
    const client = await session.comeBack()
    const isOut = await client.until(() => marksOf(client).includes(event.mark) || undefined, sweepMs)
    return seen(isOut ? 1 : 0, 1)
  },
}

function willOf({ payload }: Marked, topic: string) {
  return { topic, payload, qos: 1, retain: false } as const
}

/** Logs in with a will, and breaks the connection. */
async function breakWithWill(
  { subject, livestream }: Place,
  login: Opening['login'],
  topic: string,
): Promise<Client> {
  const payload = Buffer.from(JSON.stringify(playing(livestream)))
  const client = await openClient(subject.address(), {
    login,
    will: { topic, payload, qos: 0, retain: false },
  })
  await client.close()
  return client
}
