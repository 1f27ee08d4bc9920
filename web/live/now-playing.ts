import { parseInstant } from '../../event/format.ts'
import { kindByName } from '../../event/kind.ts'
import { isRecord } from '../page/record.ts'
import { isNews } from './newest.ts'

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

/** The newest events of one livestream, as pages show them. */
export interface NowPlaying {
  playing?: Track
  next?: Track
  text?: Text
  controls: readonly ControlState[]
}

export const nothing: NowPlaying = { controls: [] }

/** Maximum number of control states per livestream: publishers may invent names without end. */
const maxControls = 100

/** Applies an event to a livestream. Returns `before` itself if pages do not show the event. */
export function after(before: NowPlaying, event: unknown, now: number): NowPlaying {
  if (!isRecord(event)) return before
  const kind = kindByName.get(textOf(event.event))
  const time = kind && parseInstant(textOf(event[kind.timeField]))
  if (kind === undefined || time === undefined) return before
  switch (kind.suffix) {
    case 'track/playing':
      return withTrack(before, 'playing', event, time, now)
    case 'track/next':
      return withTrack(before, 'next', event, time, now)
    case 'control':
      return withControl(before, event, time, now)
    case 'data':
      if (!isNews(time, before.text?.time, now)) return before
      return { ...before, text: { time, text: textOf(event.text) } }
    default:
      return before
  }
}

/** The control states that are on. An event or `validUntil` ends a state. */
export function controlsOn({ controls }: NowPlaying, now: number): ControlState[] {
  return controls.filter(({ isOn, validUntil }) => isOn && validUntil > now)
}

/** The next track, unless it plays already. */
export function upNext({ playing, next }: NowPlaying): Track | undefined {
  if (!next || !playing) return next
  const isOver = next.time < playing.time || (next.item !== '' && next.item === playing.item)
  return isOver ? undefined : next
}

/** A track event as pages show it. */
export function trackOf(event: Record<string, unknown>, time: number): Track {
  const length = typeof event.length === 'number' ? event.length * 1000 : 0
  return {
    ...{ time, length, cover: coverOf(event.media) },
    id: textOf(event.id),
    type: textOf(event.type),
    title: textOf(event.title),
    artist: textOf(event.artist),
    item: textOf(event.playlistItemId),
  }
}

function withTrack(
  before: NowPlaying,
  field: 'playing' | 'next',
  event: Record<string, unknown>,
  time: number,
  now: number,
): NowPlaying {
  return isNews(time, before[field]?.time, now) ? { ...before, [field]: trackOf(event, time) } : before
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
  return URL.canParse(url) && new URL(url).protocol === 'https:'
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
