import { openClient } from '../client.ts'
import { controls, expect, marksOf, tracks } from '../events.ts'
import { type Hazard, seen } from '../hazard.ts'
import { sessionLimit } from '../subject.ts'
import { leaveSession, openPublisher, openUser, publish } from '../users.ts'

/* Hazards of persistent sessions: their owners, their number, their stored data. */

export const deniedFilterDelivered: Hazard = {
  about:
    'A session subscribes to a filter that is granted and to one that is refused (0x80), and comes back: messages of the ' +
    'refused one.',
  async look(place) {
    const denied = `inbox/${place.institution}`
    const session = await leaveSession(place, [`radio/${place.livestream.id}/#`, denied])
    await publish(place, await openPublisher(place), controls(place.livestream, 10))
    const client = await session.comeBack()
    await expect(client, ({ length }) => length >= 10)
    await client.quiet()
    return seen(client.messages().filter(({ topic }) => topic === denied).length, 10)
  },
}

export const lockedOut: Hazard = {
  about:
    'A session subscribes to a good filter and to one that is none, and comes back five times: refused log-ins.',
  async look(place) {
    const session = await leaveSession(place, [`radio/${place.livestream.id}/#`, 'radio/#/playing'])
    let refused = 0
    for (let tries = 0; tries < 5; tries++) {
      const client = await session.comeBack()
      await client.settle()
      if (client.isClosed()) refused++
      await client.leave()
    }
    return seen(refused, 5)
  },
}

export const takenByAnother: Hazard = {
  about:
    'Somebody else, who may read another livestream only, logs in with the client id of a session that is away: messages ' +
    'of that session.',
  async look(place) {
    const { clientId } = await leaveSession(place, [`radio/${place.livestream.id}/#`])
    await publish(place, await openPublisher(place), tracks(place.livestream, 1))
    const login = await place.subject.reader([`radio/${place.other.id}/#`])
    const thief = { login, clientId, clean: false }
    const client = await openClient(place.subject.address(), thief)
    await client.quiet()
    return seen(marksOf(client).length, 1)
  },
}

export const sessionsWithoutBound: Hazard = {
  about: `One credential makes 10 more persistent sessions than the ${sessionLimit} it may have: sessions above that.`,
  async look({ subject, livestream }) {
    const login = await subject.reader()
    let made = 0
    for (let index = 0; index < sessionLimit + 10; index++) {
      const opening = { login, clientId: `one-of-many-${livestream.id.slice(-6)}-${index}`, clean: false }
      const client = await openClient(subject.address(), opening)
      const granted = await client.subscribe([`radio/${livestream.id}/#`], 1)
      if (client.connack?.returnCode === 0 && granted?.[0] === 1) made++
      await client.leave()
    }
    if (made < sessionLimit) throw new Error(`only ${made} sessions were made`)
    return seen(made - sessionLimit, 10)
  },
}

export const sessionDenied: Hazard = {
  about: 'A persistent session that has no subscription yet comes back: log-ins that are told there is none.',
  async look({ subject, livestream }) {
    const opening = {
      login: await subject.reader(),
      clientId: `empty-${livestream.id.slice(-6)}`,
      clean: false,
    }
    await (await openUser(subject, opening)).leave()
    const client = await openUser(subject, opening)
    await client.leave()
    return seen(client.connack?.sessionPresent ? 0 : 1, 1)
  },
}

export const againWithoutDup: Hazard = {
  about:
    'A session gets messages, acknowledges none, and comes back: messages that are sent again without DUP.',
  async look(place) {
    const session = await leaveSession(place, [`radio/${place.livestream.id}/#`])
    const before = await session.comeBack({ acknowledges: false })
    const publisher = await openPublisher(place)
    await publish(place, publisher, controls(place.livestream, 10))
    await expect(before, ({ length }) => length >= 10)
    await before.close()
    const client = await session.comeBack()
    await expect(client, ({ length }) => length >= 10)
    const again = client.messages()
    return seen(again.filter(({ dup }) => !dup).length, again.length)
  },
}
