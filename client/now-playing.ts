import { parseInstant } from './instant.ts'
import { isRecord, kindOf, type TrackKind } from './kind.ts'
import { readUrl } from './url.ts'

/** A track that plays now, or will play next. Times in milliseconds since the epoch. */
export interface Track {
  id: string
  time: number
  /** `music`, `news`, … */
  type: string
  title: string
  artist: string
  /** Milliseconds; an estimate. */
  length: number
  item: string
  /** An https URL. */
  cover: string | undefined
}

/** A control state, such as a traffic announcement, that is on or was on. */
export interface ControlState {
  name: string
  time: number
  isOn: boolean
  validUntil: number
}

/** Radiotext. */
export interface Text {
  time: number
  text: string
}

/** The newest events of one livestream, as they are shown: a track of each kind, such as `playing`. */
export interface NowPlaying extends Partial<Record<TrackKind, Track>> {
  text?: Text
  controls: readonly ControlState[]
}

export const nothing: NowPlaying = { controls: [] }

/** Maximum number of control states per livestream: publishers may invent names without end. */
const maxControls = 100

/** An event time further in the future comes from a wrong clock. Milliseconds. */
const farFutureMs = 10 * 60 * 1000

/**
 * Applies an event to a livestream: the newest counts, by event time (docs/subscribers.md). `now`: milliseconds since
 * the epoch. Returns `before` itself if the event is not shown.
 */
export function after(before: NowPlaying, event: unknown, now: number): NowPlaying {
  const row = kindOf(event)
  if (!isRecord(event) || row === undefined) return before
  const time = parseInstant(textOf(event[row.timeField]))
  if (time === undefined) return before
  switch (row.class) {
    case 'track':
      if (!isNews(time, before[row.kind]?.time, now)) return before
      return { ...before, [row.kind]: trackOf(event, time) }
    case 'control':
      return withControl(before, event, time, now)
    case 'data':
      if (!isNews(time, before.text?.time, now)) return before
      return { ...before, text: { time, text: textOf(event.text) } }
  }
}

/**
 * Whether an event replaces the shown event, by their times (docs/subscribers.md, "The newest event counts"). Times are
 * milliseconds; `shown` undefined: no event is shown.
 */
export function isNews(time: number, shown: number | undefined, now: number): boolean {
  return shown === undefined || shown <= time || shown > now + farFutureMs
}

/**
 * From when on an event is shown, milliseconds since the epoch: from its time on. What comes next is announced before.
 * Undefined: it is not shown.
 */
export function shownFrom(event: unknown): number | undefined {
  const row = kindOf(event)
  if (!isRecord(event) || row === undefined) return undefined
  return row.kind === 'next' ? -Infinity : parseInstant(textOf(event[row.timeField]))
}

/** The control states that are on. An event or `validUntil` ends a state. */
export function controlsOn({ controls }: NowPlaying, now: number): ControlState[] {
  return controls.filter(({ isOn, validUntil }) => isOn && validUntil > now)
}

/** The next track, unless it plays already. */
export function upNext({ playing, next }: NowPlaying): Track | undefined {
  return next && playing && isOver(next, playing) ? undefined : next
}

/** Whether a track that was announced plays already, or was passed over. */
export function isOver(next: Place, playing: Place): boolean {
  return next.time < playing.time || (next.item !== '' && next.item === playing.item)
}

/** What places a track in the programme. */
type Place = Pick<Track, 'time' | 'item'>

/** A track event as it is shown. `time`: when it starts, milliseconds since the epoch. */
export function trackOf(event: Record<string, unknown>, time: number): Track {
  const length = typeof event.length === 'number' ? event.length * 1000 : 0
  return {
    time,
    length,
    cover: coverOf(event.media),
    id: textOf(event.id),
    type: textOf(event.type),
    title: textOf(event.title),
    artist: textOf(event.artist),
    item: textOf(event.playlistItemId),
  }
}

function withControl(
  before: NowPlaying,
  event: Record<string, unknown>,
  time: number,
  now: number,
): NowPlaying {
  const name = textOf(event.name)
  const known = before.controls.find((control) => control.name === name)
  if (!isNews(time, known?.time, now)) return before
  const validUntil = parseInstant(textOf(event.validUntil)) ?? time
  const others = before.controls.filter((control) => control !== known)
  const controls = [...others, { name, time, isOn: event.state === true, validUntil }]
  return { ...before, controls: controls.slice(-maxControls) }
}

/** The URL of a cover, which must be https. Real covers come before fallbacks. */
function coverOf(media: unknown): string | undefined {
  const covers = (Array.isArray(media) ? media : []).filter(isRecord).filter(({ type }) => type === 'cover')
  const urls = [...covers.filter(({ isFallback }) => isFallback !== true), ...covers].map(({ url }) => url)
  return urls.find((url) => typeof url === 'string' && isHttps(url)) as string | undefined
}

function isHttps(url: string): boolean {
  return readUrl(url)?.protocol === 'https:'
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
