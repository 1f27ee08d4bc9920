import { cut } from '../event/cut.ts'
import type { HubEvent } from '../event/kind.ts'

/** An element that plays, as loops are recognised by it. */
export interface Item {
  /** Two elements are the same item if they have one of these in common: the ISRC, or title and artist. */
  keys: readonly string[]
  /** The length that its publisher says, milliseconds. */
  lengthMs: number
}

const types: ReadonlySet<string> = new Set(['music', 'live', 'audio'])
/** Longest title and artist in a key, characters. */
const maxText = 200

/**
 * The item of an event of class track (open.md §7). Undefined: none that says anything when it comes again. A break plays
 * a spot several times, and at the full hour many houses have the same news.
 */
export function itemOf(event: HubEvent): Item | undefined {
  if (!('playlistItemId' in event) || !('title' in event)) return undefined
  const { type, title, artist, isrc, length } = event
  if (typeof title !== 'string' || typeof type !== 'string' || typeof length !== 'number') return undefined
  if (!types.has(type)) return undefined
  const code = typeof isrc === 'string' ? isrc.replace(separators, '').toUpperCase() : ''
  const [called, by] = [fold(title), typeof artist === 'string' ? fold(artist) : '']
  const names = called !== '' && (by !== '' || type === 'music') ? [`${called}\n${by}`] : []
  const keys = isrcForm.test(code) ? [code.slice(-12), ...names] : names
  return keys.length > 0 ? { keys, lengthMs: length * 1000 } : undefined
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
