import { isOver } from '../client/now-playing.ts'
import { bareName, type EventKind } from '../event/kind.ts'
import { radioTopic } from '../event/topic.ts'
import { readObject } from '../journal/history/event-row.ts'
import type { RetainedValue } from '../journal/retained-value.ts'
import type { Livestreams, NamedLivestream } from './livestreams.ts'
import type { Moment, Part, Parts } from './parts.ts'
import type { View } from './view.ts'

/** What a livestream shows at a moment. */
export interface Now {
  /** As JSON (open.md §4). */
  text: string
  /** Until this moment nothing changes unless an event comes, milliseconds since the epoch. */
  until: number
}

/** A track that began longer ago than its length and this is stale, milliseconds. */
const staleAfterMs = 10 * 60_000

/** Tells what livestreams show at a moment: `GET /livestreams/{id}/now`. */
export function createNow({ parts, livestreams }: { parts: Parts; livestreams: Livestreams }) {
  return {
    /** Undefined: there is no such livestream, or the view shows nothing of it. */
    async of(id: string, view: View, moment: Moment): Promise<Now | undefined> {
      const livestream = livestreams.find(id, view)
      if (!livestream) return undefined
      const shown = shownParts(await parts.of(id, moment))
      const ahead = (await parts.ahead(id, moment)).map(({ time }) => time)
      return nowOf(livestream, { shown, ahead }, view, moment.now)
    },

    /** The events that `of` shows, in the order of acceptance. */
    async events(id: string, view: View, moment: Moment): Promise<RetainedValue[]> {
      const shown = shownParts(await parts.of(id, moment)).flatMap(({ values }) => values)
      return shown.filter(({ topic }) => view.allows(topic)).sort((a, b) => a.position - b.position)
    },
  }
}

/** The parts without what is over by what other parts say: a next track that plays, a control state that is off. */
function shownParts(parts: readonly Part[]): Part[] {
  const playing = parts.find(({ kind }) => kind.isNow)?.values[0]
  return parts.map(({ kind, values }) => ({
    kind,
    values: values.filter((value) => {
      if (kind.slotField !== undefined) return readObject(value.payload).state === true
      if (bareName(kind) !== 'next' || !playing) return true
      return !isOver(placeOf(value), placeOf(playing))
    }),
  }))
}

function nowOf(
  { id, title, institution }: NamedLivestream,
  { shown, ahead }: { shown: readonly Part[]; ahead: readonly number[] },
  view: View,
  now: number,
): Now {
  const visible = shown.filter(({ kind }) => view.allows(radioTopic(id, kind)))
  const values = visible.flatMap((part) => part.values)
  const [playing] = visible.find(({ kind }) => kind.isNow)?.values ?? []
  const staleFrom = playing ? endOf(playing) + staleAfterMs : Number.POSITIVE_INFINITY
  const newest = values.reduce<RetainedValue | undefined>(
    (before, value) => (before && before.position > value.position ? before : value),
    undefined,
  )
  const changes = [...ahead, staleFrom, ...values.map(({ expires = Number.POSITIVE_INFINITY }) => expires)]
  const fields = [
    ['id', JSON.stringify(id)],
    ['title', JSON.stringify(title)],
    ['institution', JSON.stringify(institution)],
    ...visible.map(({ kind, values }) => [fieldOf(kind), textOf(kind, values)]),
    ['at', newest ? `"${new Date(newest.at).toISOString()}"` : 'null'],
    ['position', newest ? String(newest.position) : 'null'],
    ['stale', String(staleFrom < now)],
  ]
  return {
    text: `{${fields.map(([name, value]) => `"${name}":${value}`).join()}}`,
    until: Math.min(...changes.filter((time) => time > now)),
  }
}

/** `controls` for the states, which live side by side. */
export function fieldOf(kind: EventKind): string {
  return kind.slotField === undefined ? bareName(kind) : `${bareName(kind)}s`
}

/** The stored payloads are JSON already. */
function textOf({ slotField }: EventKind, values: readonly RetainedValue[]): string {
  const texts = values.map(({ payload }) => payload.toString())
  return slotField === undefined ? (texts[0] ?? 'null') : `[${texts.join()}]`
}

function placeOf({ time, payload }: RetainedValue): { time: number; item: string } {
  const { playlistItemId } = readObject(payload)
  return { time, item: typeof playlistItemId === 'string' ? playlistItemId : '' }
}

/** When a track ends by its own length, milliseconds since the epoch. */
function endOf({ time, payload }: RetainedValue): number {
  const { length } = readObject(payload)
  return time + (typeof length === 'number' ? length * 1000 : 0)
}
