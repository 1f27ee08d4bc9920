import { playing } from '../../test/events.ts'
import type { Livestream } from '../../validator/feed/feed.ts'
import { emptyStamp, stampPlace, writeStamp } from './stamp.ts'

/** Size of each event, bytes. The title fills the event up to this size. */
const eventBytes = 900

/** Makes events of one livestream in one buffer, which the next event overwrites. */
export function createEvent(livestream: Livestream) {
  const noTime = '2000-01-01T00:00:00.000Z'
  const make = (title: string) =>
    Buffer.from(JSON.stringify(playing(livestream, { start: noTime, playlistItemId: emptyStamp, title })))
  // A title of its own: livestreams that all play one title again and again look like a loop.
  const { id } = livestream
  const payload = make(id + 'x'.repeat(Math.max(1, eventBytes - make(id).length)))
  const stampAt = stampPlace(payload)
  const timeAt = payload.indexOf(noTime)
  return {
    topic: `inbox/${livestream.institution.id}`,
    payload(stamp: number): Buffer {
      payload.write(new Date().toISOString(), timeAt, 'latin1')
      writeStamp(payload, stampAt, stamp)
      return payload
    },
  }
}
