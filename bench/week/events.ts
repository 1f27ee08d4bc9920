import { randomBytes } from 'node:crypto'
import { control, data, playing } from '../../test/events.ts'
import type { Livestream } from '../../validator/feed/feed.ts'

/** Kinds of 20 successive events: track playing (P), next track (N), radiotext (D), control (C). */
const kinds = [...'PNPDPNPDPNPDPNPDPNPC'] as const
/** Every 101st event has no title, which the validation refuses in track events. */
const refusedEvery = 101
/** Length of the text in an event of about 900 bytes. Random text leaves compression little to gain. */
const textBytes = 390
const stateMs = 300_000

/** A livestream with dead webhooks has this many times the events of another livestream. */
export const busier = 3

/**
 * Makes the event number `number`, for the time `at`. Each of the first `busy` livestreams gets `busier` times the
 * events of any other livestream.
 */
export function eventAt(livestreams: readonly Livestream[], busy: number, number: number, at: number) {
  const inRound = livestreams.length + (busier - 1) * busy
  const nth = number % inRound
  const livestream = livestreams[nth < livestreams.length ? nth : nth % busy]
  if (!livestream) throw new Error('there are no livestreams')
  const text = randomBytes((textBytes * 3) / 4).toString('base64')
  const kind = kinds[Math.floor(number / inRound) % kinds.length]
  const fields = {
    start: new Date(at).toISOString(),
    title: number % refusedEvery === 0 ? null : `Titel ${number}`,
    playlistItemId: String(number),
    artist: text,
  }
  const event =
    kind === 'C'
      ? control(livestream, {
          time: fields.start,
          state: number % 2 === 0,
          validUntil: new Date(at + stateMs).toISOString(),
        })
      : kind === 'D'
        ? data(livestream, { start: fields.start, text })
        : kind === 'N'
          ? playing(livestream, { ...fields, event: 'de.org.hub.v1.radio.track.next' })
          : playing(livestream, fields)
  return { institutionId: livestream.institution.id, payload: Buffer.from(JSON.stringify(event)) }
}
