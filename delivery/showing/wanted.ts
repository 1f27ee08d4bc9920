import { readObject } from '../../journal/history/event-row.ts'
import type { RetainedValue } from '../../journal/retained-value.ts'
import type { Part } from '../../on-air/parts.ts'
import type { Output, ShownElement } from '../outputs/output.ts'
import type { ConfiguredOutput } from '../outputs/outputs.ts'

/** What an output is to show of a livestream. */
export interface Wanted {
  /** The same for the same text of the same element. */
  key: string
  shown: Omit<ShownElement, 'toggle'>
  isIdle: boolean
  /** It is too old for the `maxAge` of the output. */
  isStale: boolean
}

/**
 * An element is over when its length is, and the next one is late by this, milliseconds: playout systems announce an
 * element some seconds after it began. With a look every second, the idle text comes within 15 s (open.md §5).
 */
const lateMs = 10_000

/**
 * What an output is to show by the state of a livestream at `now` (the moment before its delay). `age`: the time since an
 * acceptance, without the delay, by clocks that do not jump. `until`: when something changes without an event.
 */
export function wantedOf(
  parts: readonly Part[],
  { carrier, needsText }: Pick<Output, 'carrier' | 'needsText'>,
  { idle, maxAge = 'element' }: Pick<ConfiguredOutput, 'idle' | 'maxAge'>,
  livestreamId: string,
  now: number,
  age: (playing: RetainedValue) => number,
): { wanted: Wanted | undefined; until: number } {
  const playing = parts.find(({ kind }) => kind.isNow)?.values[0]
  if (!playing) return { wanted: undefined, until: Number.POSITIVE_INFINITY }
  const event = readObject(playing.payload)
  const length = typeof event.length === 'number' && event.length > 0 ? event.length : null
  const end = idle === undefined || length === null ? Number.POSITIVE_INFINITY : playing.time + length * 1000
  if (idle !== undefined && now >= end + lateMs)
    return { wanted: idleText(livestreamId, idle, playing, end), until: Number.POSITIVE_INFINITY }
  const shown = {
    livestreamId,
    artist: typeof event.artist === 'string' && event.artist !== '' ? event.artist : null,
    title: String(event.title ?? ''),
    type: String(event.type ?? ''),
    start: typeof event.start === 'string' ? event.start : new Date(playing.time).toISOString(),
    length,
  }
  const isStale = maxAge !== 'element' && age(playing) > maxAge * 1000
  const key = String(playing.position)
  if (carrier.write(shown).text === '') {
    // It is shown as an element: the same text behind its end is not sent again.
    const inPlace = idle !== undefined && {
      ...idleText(livestreamId, idle, playing, playing.time),
      isIdle: false,
    }
    if (inPlace) return { wanted: inPlace, until: Number.POSITIVE_INFINITY }
    if (needsText) return { wanted: undefined, until: Number.POSITIVE_INFINITY }
  }
  return { wanted: { key, shown, isIdle: false, isStale }, until: end + lateMs }
}

/** The idle text behind an element, or in place of one without a text. */
function idleText(livestreamId: string, idle: string, { position }: RetainedValue, from: number): Wanted {
  const start = new Date(from).toISOString()
  const shown = { livestreamId, artist: null, title: idle, type: 'idle', start, length: null }
  return { key: `idle after ${position}`, shown, isIdle: true, isStale: false }
}
