import { controls, expect, marksOf, missingAt, tracks } from '../events.ts'
import { type Hazard, type Place, seen } from '../hazard.ts'
import { queueLimit } from '../subject.ts'
import { leaveSession, openPublisher, publish } from '../users.ts'

/* Hazards of the messages that a broker keeps for an offline session. */

export const outdatedDelivered: Hazard = {
  about:
    'A session comes back after 150 now-playing events of one livestream: events it gets that others have long ' +
    'since replaced.',
  async look(place) {
    const events = tracks(place.livestream, 150)
    const { session } = await publishForAbsent(place, events)
    const client = await session.comeBack()
    const newest = events.at(-1)?.mark ?? ''
    await expect(client, (marks) => marks.includes(newest))
    await client.quiet()
    return seen(marksOf(client).filter((mark) => mark !== newest).length, events.length - 1)
  },
}

export const queueWithoutBound: Hazard = {
  about: `A session comes back after 150 control events, ${queueLimit} of which may wait: events above that.`,
  async look(place) {
    const events = controls(place.livestream, 150)
    const { session } = await publishForAbsent(place, events)
    const client = await session.comeBack()
    await expect(client, ({ length }) => length >= queueLimit)
    await client.quiet()
    const count = Math.max(0, marksOf(client).length - queueLimit)
    return seen(count, events.length - queueLimit)
  },
}

export const newestHeldBack: Hazard = {
  about:
    'A session comes back after 1,100 control events, and one more is published: of the newest 50 before it, those that do ' +
    'not come although it comes.',
  alone: true,
  async look(place) {
    const [events, [last]] = [controls(place.livestream, 1100), controls(place.livestream, 1)]
    const { session, publisher } = await publishForAbsent(place, events)
    const client = await session.comeBack()
    await expect(client, ({ length }) => length > 0)
    await client.quiet()
    if (last) await publish(place, publisher, [last])
    await expect(client, (marks) => marks.includes(last?.mark ?? ''))
    return seen(await missingAt(client, events.slice(-50)), 50)
  },
}

export const queueOverwritten: Hazard = {
  about:
    'A broker that keeps its name is restarted between two times 40 control events for a session that is away: ' +
    'acknowledged events that never come.',
  alone: true,
  aedes: { brokerId: 'broker-1' },
  async look(place) {
    const [before, after] = [controls(place.livestream, 40), controls(place.livestream, 40)]
    const { session, acknowledged } = await publishForAbsent(place, before)
    await place.subject.restart()
    const publisher = await openPublisher(place)
    const later = await publish(place, publisher, after)
    const client = await session.comeBack()
    const all = [...acknowledged, ...later]
    return seen(await missingAt(client, all), all.length)
  },
}

async function publishForAbsent(place: Place, events: Parameters<typeof publish>[2]) {
  const session = await leaveSession(place, [`radio/${place.livestream.id}/#`])
  const publisher = await openPublisher(place)
  return { session, publisher, acknowledged: await publish(place, publisher, events) }
}
