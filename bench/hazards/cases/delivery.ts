import { playingTopic } from '../../../test/events.ts'
import { expect, marksOf, missingAt, tracks } from '../events.ts'
import { type Hazard, seen } from '../hazard.ts'
import { leaveSession, openPublisher, openSubscriber, openUser, publish } from '../users.ts'

/* Hazards: connected or new subscribers get wrong messages, or miss messages. */

export const overtaken: Hazard = {
  about:
    'One of two livestreams has 40 sessions that are away, and both get an event, 30 times: events that a connected ' +
    'subscriber of both never gets.',
  async look(place) {
    const { livestream, other } = place
    for (let index = 0; index < 40; index++) await leaveSession(place, [`radio/${livestream.id}/#`])
    const subscriber = await openSubscriber(place, [`radio/${livestream.id}/#`, `radio/${other.id}/#`], 1)
    const publisher = await openPublisher(place)
    const [slow, fast] = [tracks(livestream, 30), tracks(other, 30)]
    const events = slow.flatMap((event, index) => [event, ...fast.slice(index, index + 1)])
    const acknowledged = await publish(place, publisher, events, { atOnce: 2 })
    return seen(await missingAt(subscriber, acknowledged), acknowledged.length)
  },
}

export const qosAboveGranted: Hazard = {
  about:
    'A subscriber is granted QoS 0 for a filter with a wildcard: messages it gets at another QoS, five live ones and a ' +
    'retained one.',
  async look(place) {
    const { livestream } = place
    const publisher = await openPublisher(place)
    const live = await openSubscriber(place, [`radio/${livestream.id}/#`], 0)
    await publish(place, publisher, tracks(livestream, 5), { atOnce: 1 })
    await expect(live, ({ length }) => length === 5)
    const later = await openSubscriber(place, [`radio/${livestream.id}/#`], 0)
    await expect(later, ({ length }) => length > 0)
    const messages = [...live.messages(), ...later.messages()]
    return seen(messages.filter(({ qos }) => qos > 0).length, messages.length)
  },
}

export const olderReplacesNewer: Hazard = {
  about: 'Of two events the newer one comes first, five times: new subscribers that get the older one.',
  async look(place) {
    const { livestream } = place
    const publisher = await openPublisher(place)
    let wrong = 0
    for (let round = 0; round < 5; round++) {
      const [older, newer] = tracks(livestream, 2)
      if (!older || !newer) continue
      await publish(place, publisher, [newer, older], { atOnce: 1 })
      const client = await openSubscriber(place, [playingTopic(livestream)], 1)
      await expect(client, ({ length }) => length > 0)
      if (marksOf(client)[0] !== newer.mark) wrong++
      await client.leave()
    }
    return seen(wrong, 5)
  },
}

export const retainedCleared: Hazard = {
  about:
    'A publisher of another institution sends an empty retained message to the topic of what is playing: topics of which ' +
    'new subscribers get nothing any more.',
  async look(place) {
    const { subject, livestream } = place
    await publish(place, await openPublisher(place), tracks(livestream, 1))
    const login = await subject.publisher('urn:org:institution:0000000000000009')
    const stranger = await openUser(subject, { login })
    const packet = { cmd: 'publish', qos: 0, dup: false, retain: true, payload: '' } as const
    stranger.send({ ...packet, topic: playingTopic(livestream) })
    await stranger.settle()
    const client = await openSubscriber(place, [playingTopic(livestream)], 1)
    const isThere = await client.until(() => marksOf(client).length > 0 || undefined)
    return seen(isThere ? 0 : 1, 1)
  },
}
