import { setTimeout as delay } from 'node:timers/promises'
import { openClient } from '../client.ts'
import { controls, missingAt, tracks } from '../events.ts'
import { type Hazard, seen } from '../hazard.ts'
import { breakConnections, withFault } from '../store-faults.ts'
import { leaveSession, openPublisher, openSubscriber, publish } from '../users.ts'

/* Hazards of a store that fails, is disconnected, or gets too many commands. */

export const storeErrorEndsProcess: Hazard = {
  about:
    'Redis refuses writes for three seconds, as after a failover (`READONLY`), while clients log in and out: ' +
    'processes that end.',
  onRedis: true,
  alone: true,
  async look({ subject }) {
    const login = await subject.reader()
    await withFault(subject, 'is read-only', async () => {
      const end = performance.now() + 3000
      while (subject.isRunning() && performance.now() < end) {
        const client = await Promise.race([openClient(subject.address(), { login }), delay(1000)])
        await client?.close()
        await delay(100)
      }
    })
    return seen(subject.isRunning() ? 0 : 1, 1)
  },
}

export const lostWithConnection: Hazard = {
  about:
    'The connection to Redis breaks over which a broker hears of messages, ten times, each time before the next ' +
    'events are published: acknowledged events that a connected subscriber never gets.',
  onRedis: true,
  alone: true,
  async look(place) {
    const events = controls(place.livestream, 100)
    const subscriber = await openSubscriber(place, [`radio/${place.livestream.id}/#`], 1)
    const acknowledged = []
    for (let start = 0; start < events.length; start += 10) {
      // A new publisher each time: the broker may have cut the last one off.
      const publisher = await openPublisher(place)
      await breakConnections(place.subject)
      acknowledged.push(...(await publish(place, publisher, events.slice(start, start + 10))))
      await publisher.leave()
    }
    return seen(await missingAt(subscriber, acknowledged), acknowledged.length)
  },
}

export const commandsPerSession: Hazard = {
  about: 'Commands of Redis for one event that 60 sessions are subscribed to which are away.',
  onRedis: true,
  alone: true,
  async look(place) {
    const { redis } = place.subject
    const sessions = 60
    const filters = [`radio/${place.livestream.id}/#`]
    for (let index = 0; index < sessions; index++) await leaveSession(place, filters)
    const publisher = await openPublisher(place)
    const events = tracks(place.livestream, 20)
    const before = (await redis?.counters())?.commands ?? 0
    await publish(place, publisher, events, { atOnce: 1 })
    const after = (await redis?.counters())?.commands ?? 0
    const each = Math.round((after - before) / events.length)
    return { shown: each >= sessions, count: each, of: sessions }
  },
}
