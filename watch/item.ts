import { cut } from '../event/cut.ts'
import type { HubEvent } from '../event/kind.ts'

/** An element that plays, as loops are recognised by it. */
export interface Item {
  /** Two elements are the same item if they have one of these in common: the ISRC, or title and artist. */
  keys: readonly string[]
  /** The length that its publisher says, milliseconds. */
  lengthMs: number
  /** What the event said, if it is short enough to be kept. */
  said?: Said | undefined
}

interface Said {
  type: string
  title: string
  artist?: string | null | undefined
  isrc?: string | null | undefined
  length: number
}

const types: ReadonlySet<string> = new Set(['music', 'live', 'audio'])
/** Longest title and artist in a key, characters. */
const maxText = 200
/** Longest title, artist and ISRC together that are kept for the next event, characters. */
const maxSaid = 1_000

/**
 * The item of an event of class track (open.md §7). Undefined: none that says anything when it comes again. A break plays
 * a spot several times, and at the full hour many houses have the same news. `last`: that of the event before, which many
 * playouts send again and again.
 */
export function itemOf(event: HubEvent, last?: Item): Item | undefined {
  if (!('playlistItemId' in event) || !('title' in event)) return undefined
  if (last?.said && isSame(last.said, event)) return last
  const { type, title, artist, isrc, length } = event
  if (typeof title !== 'string' || typeof type !== 'string' || typeof length !== 'number') return undefined
  if (!types.has(type)) return undefined
  const code = typeof isrc === 'string' ? isrc.replace(separators, '').toUpperCase() : ''
  const [called, by] = [fold(title), typeof artist === 'string' ? fold(artist) : '']
  const names = called !== '' && (by !== '' || type === 'music') ? [`${called}\n${by}`] : []
  const keys = isrcForm.test(code) ? [code.slice(-12), ...names] : names
  if (keys.length === 0) return undefined
  const isShort = title.length + (artist?.length ?? 0) + (isrc?.length ?? 0) <= maxSaid
  const said = isShort ? { type, title, artist, isrc, length } : undefined
  return { keys, lengthMs: length * 1000, said }
}

function isSame(said: Said, { type, title, artist, isrc, length }: Said): boolean {
  return (
    said.title === title &&
    said.artist === artist &&
    said.isrc === isrc &&
    said.type === type &&
    said.length === length
  )
}

/** Without differences of case and white space. */
function fold(text: string): string {
  return cut(text, maxText).trim().replace(whiteSpace, ' ').toLowerCase()
}

/** All but a single space: most titles have none of it, and nothing is made of them. */
const whiteSpace = /\s{2,}|[^\S ]/g
const separators = /[\s\p{Pd}:]/gu
/** Bounded: the text may be long. */
const isrcForm = /^(?:ISRC)?[A-Z]{2}[A-Z\d]{3}\d{7}$/
