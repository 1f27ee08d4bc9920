import { cut } from '../../event/cut.ts'

/** How a control state reads: `traffic-announcement` is `Traffic announcement`. */
export function nameOfControl(name: string): string {
  const words = name.replace(/[-_]+/g, ' ').trim()
  return words === '' ? 'Announcement' : words.slice(0, 1).toUpperCase() + cut(words.slice(1), 79)
}

/** Letters in place of a missing cover. */
export function initialsOf(name: string): string {
  const words = name.split(/[\s-]+/).filter((word) => /^[\p{L}\p{N}]/u.test(word))
  const letters = words.length > 1 ? words.map((word) => [...word][0]) : [...(words[0] ?? '')]
  return letters.slice(0, 2).join('').toUpperCase()
}

/** One of 360 colours. The same text always gets the same colour. */
export function hueOf(text: string): number {
  let hash = 0
  for (const letter of text) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) % 360
  return hash
}
