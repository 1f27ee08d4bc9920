import { control, controlTopic, playing, playingTopic } from '../../test/events.ts'
import type { Livestream } from '../../validator/feed/feed.ts'
import { type Client, longPatienceMs } from './client.ts'

/** `mark`: a time in the payload by which the bench recognises the event. */
export interface Marked {
  mark: string
  topic: string
  payload: Buffer
}

let lastMark = Date.now() - 3_600_000

/** Now-playing events of about `bytes` bytes, the newest last. Subscribers need only the newest. */
export function tracks(livestream: Livestream, count: number, bytes = 0): Marked[] {
  const title = 'x'.repeat(Math.max(10, bytes - 700))
  return marks(count).map((mark) => ({
    mark,
    topic: playingTopic(livestream),
    payload: Buffer.from(JSON.stringify(playing(livestream, { playlistItemId: mark, start: mark, title }))),
  }))
}

/** Control events, of which a subscriber needs every one. */
export function controls(livestream: Livestream, count: number): Marked[] {
  return marks(count).map((mark) => ({
    mark,
    topic: controlTopic(livestream),
    payload: Buffer.from(JSON.stringify(control(livestream, { time: mark }))),
  }))
}

function marks(count: number): string[] {
  return Array.from({ length: count }, () => new Date(++lastMark).toISOString())
}

/** The marks of the messages that a client got, in the order of receipt. */
export function marksOf(client: Pick<Client, 'messages'>): string[] {
  return client.messages().flatMap(({ payload }) => {
    const [, mark] = /"(?:playlistItemId|time)":"([^"]+)"/.exec(String(payload)) ?? []
    return mark === undefined ? [] : [mark]
  })
}

/** Waits for these events at a client. Returns how many have not come in time. */
export async function missingAt(client: Client, events: readonly Marked[]): Promise<number> {
  const missing = () => {
    const got = new Set(marksOf(client))
    return events.filter(({ mark }) => !got.has(mark)).length
  }
  await client.until(() => missing() === 0 || undefined)
  return missing()
}

/** Waits for messages that every system delivers. Throws without these messages, because nothing would be tested. */
export async function expect(client: Client, isThere: (marks: readonly string[]) => boolean): Promise<void> {
  const came = await client.until(() => isThere(marksOf(client)) || undefined, longPatienceMs)
  if (!came) throw new Error('what every subscriber gets did not come')
}
