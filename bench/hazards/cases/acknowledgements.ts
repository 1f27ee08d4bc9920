import { setTimeout as delay } from 'node:timers/promises'
import { controlTopic } from '../../../test/events.ts'
import { controls, missingAt, tracks } from '../events.ts'
import { type Hazard, seen } from '../hazard.ts'
import { withFault } from '../store-faults.ts'
import { queueLimit } from '../subject.ts'
import { leaveSession, openPublisher, openUser, publish } from '../users.ts'

/* Hazards: acknowledgements on which a client cannot rely. */

const others = 20

export const killedAfterPuback: Hazard = {
  about:
    `A broker is killed (\`kill -9\`) as soon as its last PUBACK is there. ${others + 1} sessions are away: events that it ` +
    'acknowledged, and that do not come when one of them is back.',
  alone: true,
  async look(place) {
    const events = controls(place.livestream, queueLimit)
    for (let index = 0; index < others; index++) await leaveSession(place, [controlTopic(place.livestream)])
    const session = await leaveSession(place, [controlTopic(place.livestream)])
    const publisher = await openPublisher(place)
    const acknowledged = await publish(place, publisher, events, { past: true, atOnce: events.length })
    await place.subject.restart()
    const client = await session.comeBack()
    return seen(await missingAt(client, acknowledged), acknowledged.length)
  },
}

export const pubackWithoutStore: Hazard = {
  about: 'Redis stands still (SIGSTOP): events that are acknowledged meanwhile.',
  onRedis: true,
  alone: true,
  async look(place) {
    const events = tracks(place.livestream, 20)
    await leaveSession(place, [`radio/${place.livestream.id}/#`])
    const publisher = await openPublisher(place)
    const { pid = 0 } = place.subject.redis ?? {}
    process.kill(pid, 'SIGSTOP')
    try {
      const all = publish(place, publisher, events, { past: true })
      await Promise.race([all, delay(2000)])
      return seen(publisher.count('puback'), events.length)
    } finally {
      process.kill(pid, 'SIGCONT')
      await publisher.close()
    }
  },
}

export const qos2Lost: Hazard = {
  about:
    'Redis refuses commands while a PUBLISH of QoS 2 is on its way, and the client sends it again as it has to: ' +
    'messages of which the handshake was finished and that a subscriber never gets.',
  onRedis: true,
  alone: true,
  async look(place) {
    const { subject, institution } = place
    const events = controls(place.livestream, 5)
    const topic = controlTopic(place.livestream)
    const opening = { login: await subject.reader(), clean: false }
    const subscriber = await openUser(subject, opening)
    await subscriber.subscribe([topic], 1)
    const finished = []
    for (const [index, event] of events.entries()) {
      const { payload } = event
      const packet = {
        cmd: 'publish' as const,
        qos: 2 as const,
        retain: false,
        payload,
        messageId: 7,
        topic: subject.entry(topic, institution),
      }
      const who = { login: await subject.publisher(institution), clientId: `twice-${index}`, clean: false }
      const first = await openUser(subject, who)
      await withFault(subject, 'refuses', async () => {
        first.send({ ...packet, dup: false })
        await first.until(() => first.count('pubrec') > 0 || undefined, 3000)
      })
      await first.close()
      const again = await openUser(subject, who)
      again.send({ ...packet, dup: true })
      if (await again.until(() => again.count('pubcomp') > 0 || undefined)) finished.push(event)
      await again.leave()
    }
    return seen(await missingAt(subscriber, finished), finished.length)
  },
}
