import type { ShownElement } from '../output.ts'

/** The placeholders of templates, each with what stands there. */
export const placeholders = {
  title: 'title',
  artist: 'artist; empty if there is none',
  text: 'artist and title in one text',
  type: 'type of the element, such as `music`; `idle` for the idle text',
  start: 'when it began, ISO 8601',
  length: 'length in seconds; empty if it is unknown',
  livestreamId: 'id of the livestream',
  name: 'what `livestreams` calls it',
} as const

export type Values = Readonly<Record<keyof typeof placeholders, string>>

export function valuesOf(element: ShownElement, text: string, name: string): Values {
  const { title, artist, type, start, length, livestreamId } = element
  return { title, artist: artist ?? '', text, type, start, length: String(length ?? ''), livestreamId, name }
}

const placeholder = /\{([A-Za-z]+)\}/g

export const knownPlaceholders = Object.keys(placeholders)
  .map((name) => `{${name}}`)
  .join(', ')

/** Names in braces that are no placeholders, with their braces. */
export function unknownIn(template: string): string[] {
  return [...template.matchAll(placeholder)].flatMap(([whole, name = '']) => (isKnown(name) ? [] : [whole]))
}

/** The same for a URL, which has no other use for braces. */
export function unknownInUrl(template: string): string[] {
  return (
    template.replace(placeholder, (whole, name) => (isKnown(name) ? '' : whole)).match(/\{[^{}]*\}?|\}/g) ??
    []
  )
}

export function hasPlaceholder(template: string): boolean {
  return [...template.matchAll(placeholder)].some(([, name = '']) => isKnown(name))
}

function isKnown(name: string): name is keyof Values {
  return Object.hasOwn(placeholders, name)
}

export function fill(template: string, values: Values, encode: (value: string) => string): string {
  return template.replace(placeholder, (whole, name: string) =>
    isKnown(name) ? encode(values[name]) : whole,
  )
}

/** Percent-encodes for query and body. `encodeURIComponent` leaves `'()*!`, at which some servers stumble. */
export function percentEncoded(value: string): string {
  return encodeURIComponent(value).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/**
 * Fills the path of a URL. A segment of dots alone would name another folder, encoded or not: its dots become `_`. A
 * slash of a value stays encoded.
 */
export function filledPath(path: string, values: Values): string {
  return path
    .split('/')
    .map((segment) => {
      const filled = fill(segment, values, percentEncoded)
      return filled !== segment && /^\.+$/.test(filled) ? filled.replaceAll('.', '_') : filled
    })
    .join('/')
}

/** Fills the texts of a JSON value. Keys, numbers and the shape stay: no value can add anything. */
export function filledJson(value: unknown, values: Values): unknown {
  if (typeof value === 'string') return fill(value, values, (text) => text)
  if (Array.isArray(value)) return value.map((item) => filledJson(item, values))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, filledJson(inner, values)]))
}
