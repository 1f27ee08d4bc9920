/** How a carrier shows an element: its characters, its length, and where artist and title stand in the text. */
export interface Carrier {
  /** What the docs call it. */
  readonly name: string
  /** The most that it carries, in words. */
  readonly limit: string
  /** The text of an element as the carrier shows it. */
  write(element: ArtistAndTitle): CarrierText
}

/** What is to be shown. Texts as the publisher wrote them. */
export interface ArtistAndTitle {
  readonly artist: string | null
  readonly title: string
}

export interface CarrierText {
  readonly text: string
  /** Where the artist stands in the text. Undefined: not at all. */
  readonly artist?: TextSpan
  readonly title?: TextSpan
}

/** In characters (Unicode code points), not bytes. */
export interface TextSpan {
  readonly start: number
  readonly length: number
}

const between = ' - '

/**
 * So much of a text is looked at, UTF-16 units: more than any carrier has room for, and a publisher may send 400 kB, which
 * would hold up the hub.
 */
const mostRead = 2_000

/**
 * Writes artist and title one behind the other, and cuts what is too long.
 * `show`: one text in the characters of the carrier. `sizeOf`: the size of a text, in the unit of `most`.
 */
export function writeElement(
  { artist, title }: ArtistAndTitle,
  { show, sizeOf, most }: { show: (text: string) => string; sizeOf: (text: string) => number; most: number },
): CarrierText {
  // Half of a surrogate pair at the cut is removed with the control characters.
  const shown = (part: string) => show(cleaned(part.slice(0, mostRead)))
  const texts = { artist: shown(artist ?? ''), title: shown(title) }
  const whole = [texts.artist, texts.title].filter((part) => part !== '').join(between)
  const text = cutAtWord(whole, (part) => sizeOf(part) <= most)
  const length = lengthOf(text)
  const titleStart = texts.artist === '' ? 0 : lengthOf(texts.artist) + between.length
  const artistPlace = placeWithin({ start: 0, length: lengthOf(texts.artist) }, length)
  const titlePlace = placeWithin({ start: titleStart, length: lengthOf(texts.title) }, length)
  return { text, ...(artistPlace && { artist: artistPlace }), ...(titlePlace && { title: titlePlace }) }
}

function placeWithin({ start, length }: TextSpan, whole: number): TextSpan | undefined {
  const left = Math.min(length, whole - start)
  return left > 0 ? { start, length: left } : undefined
}

/** The number of characters (Unicode code points). */
export function lengthOf(text: string): number {
  return [...text].length
}

/**
 * A text without what no carrier shows: control characters, halves of surrogate pairs, marks that turn the direction of
 * writing. Line separators and tabs become spaces, rows of spaces become one (open.md §5).
 */
export function cleaned(text: string): string {
  return text
    .replace(/[\s\u0085\u2028\u2029]+/gu, ' ')
    .replace(
      /[\p{Cc}\p{Cs}\p{Co}\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu,
      '',
    )
    .normalize('NFC')
    .replace(/ {2,}/g, ' ')
    .trim()
}

/** A longer word is cut within, UTF-16 units. */
const longWord = 20

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/**
 * The beginning of a text that fits. It ends with a whole word, unless that would cost more than `longWord`. It does not
 * end within a character as people see it, such as an emoji of several code points, unless the first one does not fit.
 */
function cutAtWord(text: string, fits: (part: string) => boolean): string {
  if (fits(text)) return text
  const characters = fitting(
    Array.from(graphemes.segment(text), ({ segment }) => segment),
    fits,
  )
  // The first may be a letter with hundreds of marks.
  const part = characters === '' ? fitting([...text], fits) : characters
  const end = part.length
  const border = text[end] === ' ' ? end : part.lastIndexOf(' ')
  const kept = border >= 0 && end - border <= longWord ? part.slice(0, border) : part
  return kept.replace(/[\s\-,;:/(]+$/, '')
}

function fitting(parts: readonly string[], fits: (text: string) => boolean): string {
  let text = ''
  for (const part of parts) {
    if (!fits(text + part)) break
    text += part
  }
  return text
}
