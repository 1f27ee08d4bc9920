import { playing } from '../../test/events.ts'
import { type Attack, countStatuses, createAssault, nextChunk } from './attack.ts'

/** Number of livestreams of an event. */
const livestreamsEach = 20
/** Number of different livestreams in all. Above it the hub refuses an institution more. */
const livestreamsInAll = 2_000
const patienceMs = 10_000

/** A user publishes over HTTPS for livestreams that no feed lists: 20 in an event. The first events make their topics. */
export const newLivestreams: Attack = (target, force) => {
  const assault = createAssault(force)
  const [known] = target.livestreams
  if (!known) throw new Error('no livestream')
  let named = 0
  const request = () => {
    const services = Array.from({ length: livestreamsEach }, () => ({
      type: 'PermanentLivestream',
      externalId: `crid://attack.example/${named++ % livestreamsInAll}`,
      publisherId: known.publisher.id,
    }))
    const body = JSON.stringify(playing(known, { services, event: undefined }))
    return Buffer.from(
      'POST /events/de.org.hub.v1.radio.track.playing HTTP/1.1\r\ncontent-type: application/json\r\n' +
        `authorization: Bearer ${target.token}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    )
  }
  return assault.everywhere(async (worker) => {
    const socket = await assault.connect(target.httpsPort, worker)
    if (!socket) return
    countStatuses(socket, assault)
    while (!assault.isOver() && (await assault.write(socket, request()))) {
      assault.seen.units++
      await nextChunk(socket, patienceMs)
    }
    assault.leave(socket)
  })
}
