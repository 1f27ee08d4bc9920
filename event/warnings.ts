import { hasGtinCheckDigit, hasIsniCheckDigit } from './check-digit.ts'
import { type ErrorItem, ErrorList, itemOf, pathOf, quote } from './error.ts'
import { isRecord } from './json.ts'
import type { EventKind, HubEvent } from './kind.ts'
import type { TrackEvent } from './kinds/track.ts'
import { isWronglyDecoded } from './wrong-encoding.ts'

/** What a publisher should know of an event that is published all the same (open.md §3). */
export interface Warning extends ErrorItem {
  /** Only of `start.clock`: milliseconds from the start of the event to its arrival; negative if it starts later. */
  startBehindMs?: number
}

/** What warnings depend on, beside the event. */
interface Circumstances {
  kind: EventKind
  /** Event time, milliseconds since the epoch. */
  time: number
  /** When the hub received the event, milliseconds since the epoch. */
  receivedAt: number
  /** The types of all plugin targets. */
  pluginTargets: ReadonlySet<string>
  /** What the event would be in loops of rebroadcasters. */
  rounds?: readonly Round[] | undefined
}

/** A round of a loop: a livestream publishes an item again after another one has published it in between (open.md §7). */
export interface Round {
  livestreamId: string
  /** How many rounds there were of this item on this livestream, this one included. */
  rounds: number
}

/**
 * The warnings about an event in the document's form that the hub publishes: `found`, then those of `warningTable`.
 * Within the bounds of an error list, and in time linear in the size of the event.
 */
export function warningsOf(
  event: HubEvent,
  circumstances: Circumstances,
  found: readonly ErrorItem[] = [],
): Warning[] {
  const warnings = new ErrorList('warnings')
  for (const item of found) warnings.add(() => item)
  const seen = look(event, circumstances)
  let code = ''
  let sentence = ''
  // One function for all rows: most events warn of nothing.
  const warn: Warn = (path, detail, more) => {
    warnings.add(() => ({ ...itemOf(code, sentence, pathOf(...path), detail()), ...more }))
  }
  for (const [name, kind] of rows) {
    code = name
    sentence = kind.sentence
    kind.check(seen, warn)
  }
  return warnings.items()
}

interface WarningKind {
  /** What is wrong. The wording can change, the code must not. */
  readonly sentence: string
  /** What the publisher should do, for the documentation. */
  readonly remedy: string
  /** Fields that make a right event warn of this, received at 2026-01-31T12:00:00+01:00. */
  readonly example: Readonly<Record<string, unknown>>
  /** What else makes it warn, if the fields alone do not. */
  readonly exampleAmid?: { readonly means: string; readonly circumstances: Partial<Circumstances> }
  readonly check: (seen: Seen, warn: Warn) => void
}

type Warn = (path: readonly (string | number)[], detail: () => string, more?: Partial<Warning>) => void

/** All warnings about the contents of events. Never a reason to refuse one: what often is right must not warn. */
export const warningTable = {
  'start.clock': {
    sentence: 'The start is far from the time of the hub',
    remedy: 'publish an element when it starts, and keep your clock right',
    example: { start: '2026-01-31T11:58:00+01:00' },
    check({ kind, time, receivedAt }, warn) {
      const startBehindMs = Math.round(receivedAt - time)
      if (!kind.isNow || Math.abs(startBehindMs) <= maxClockDifference) return
      const detail = () =>
        `${Math.round(Math.abs(startBehindMs) / 1000)} s ${startBehindMs > 0 ? 'behind' : 'ahead of'} it`
      warn(['start'], detail, { startBehindMs })
    },
  },
  'length.unit': {
    sentence: 'The length is more than a day',
    remedy: 'send seconds, no milliseconds',
    example: { length: 214000 },
    check({ track }, warn) {
      if (track && track.length > maxLength)
        warn(['length'], () => `${track.length} seconds, expected at most ${maxLength}`)
    },
  },
  'text.empty': {
    sentence: 'The text is empty',
    remedy: 'send a title for listeners, and a `playlistItemId` that is unique within the publisher',
    example: { title: ' ' },
    check({ track }, warn) {
      if (!track) return
      for (const field of ['title', 'playlistItemId'] as const) {
        if (isBlank(track[field])) warn([field], () => quote(track[field]))
      }
    },
  },
  'text.entity': {
    sentence: 'The text has HTML entities',
    remedy: 'send the characters themselves: a player shows the text as it is',
    example: { title: 'Ebbe &amp; Flut' },
    check({ texts }, warn) {
      for (const { path, text } of texts) {
        if (text.includes('&') && entity.test(text)) warn(path, () => quote(text))
      }
    },
  },
  'text.encoding': {
    sentence: 'The text was read in the wrong encoding',
    remedy: 'read the text in the encoding it is written in, and send UTF-8',
    example: { title: 'KÃ¼stenlied' },
    check({ texts }, warn) {
      for (const { path, text } of texts) if (isWronglyDecoded(text)) warn(path, () => quote(text))
    },
  },
  'text.nul': {
    sentence: 'The text has the character U+0000, which databases and programs in C do not take',
    remedy:
      'take it out. In the tags of an MP3 file (ID3v2.4) it stands between several artists: write a comma there',
    example: { artist: 'Mira Hollund\u0000Jonte Brink' },
    check({ texts }, warn) {
      for (const { path, text } of texts) if (text.includes('\0')) warn(path, () => quote(text))
    },
  },
  'title.file': {
    sentence: 'The title is the name of a file',
    remedy: 'send the title of the element, for listeners',
    example: { title: 'kw1_0042.mp3' },
    check({ track }, warn) {
      if (track && audioFile.test(head(track.title))) warn(['title'], () => quote(track.title))
    },
  },
  'title.artist': {
    sentence: 'The title repeats the artist',
    remedy: 'send the title alone: a player shows the artist beside it',
    example: { title: 'Mira Hollund - Ebbe und Flut', artist: 'Mira Hollund' },
    check({ track }, warn) {
      if (track && repeatsArtist(track)) warn(['title'], () => quote(track.title))
    },
  },
  'isrc.form': {
    sentence: 'The ISRC does not have the form of one',
    remedy: 'send two letters, three letters or digits, and seven digits; null if there is none',
    example: { isrc: 'DEXX126000' },
    check({ track }, warn) {
      const isrc = track?.isrc
      if (isrc && !isBlank(isrc) && !isrcForm.test(withoutSeparators(isrc)))
        warn(['isrc'], () => `${quote(isrc)}, expected for example DE-XX1-26-00042`)
    },
  },
  'upc.checksum': {
    sentence: 'The check digit of the UPC or EAN is wrong',
    remedy: 'look for a wrong digit; null if there is no UPC',
    example: { upc: '4000000000001' },
    check({ track }, warn) {
      const upc = track?.upc
      if (!upc) return
      // Without shorter numbers: catalogue numbers are such.
      const digits = withoutSeparators(upc)
      if (gtin.test(digits) && !hasGtinCheckDigit(digits)) warn(['upc'], () => quote(upc))
    },
  },
  'isni.checksum': {
    sentence: 'This is no ISNI, or its check digit is wrong',
    remedy: 'send all sixteen characters, with the zeros in front; null if there is none',
    example: { contributors: [{ name: 'Mira Hollund', role: 'artist', isni: '0000000000000002' }] },
    check({ track }, warn) {
      for (const [index, { isni }] of (track?.contributors ?? []).entries()) {
        if (isni && !isBlank(isni) && !isIsni(isni)) warn(['contributors', index, 'isni'], () => quote(isni))
      }
    },
  },
  'cover.insecure': {
    sentence: 'The address of the cover is not https',
    remedy: 'offer the cover over https: pages and apps do not load it otherwise',
    example: { media: [{ type: 'cover', url: 'http://media.example/1.jpg', description: 'Cover' }] },
    check({ track }, warn) {
      for (const [index, item] of (track?.media ?? []).entries()) {
        if (item.type !== 'cover') continue
        for (const field of ['url', 'templateUrl'] as const) {
          const address = item[field]
          if (typeof address === 'string' && !https.test(address))
            warn(['media', index, field], () => quote(address))
        }
      }
    },
  },
  'radiotext.length': {
    sentence: 'The text is longer than its carrier',
    remedy: 'send at most 64 characters as `radiotext`, and at most 128 bytes of UTF-8 as `dynlabel`',
    example: {
      data: [
        {
          type: 'radiotext',
          id: 0,
          value: 'Sie hören Ebbe und Flut von Mira Hollund auf Küstenwelle, Ihrem Sender',
        },
      ],
    },
    check({ items }, warn) {
      for (const { type, value, path } of items) {
        if (typeof value !== 'string') continue
        const excess = type === 'radiotext' ? overRadiotext(value) : type === 'dynlabel' && overLabel(value)
        if (excess) warn([...path, 'value'], () => excess)
      }
    },
  },
  'rtplus.class': {
    sentence: 'This is no class of RT+, or a reserved one',
    remedy: 'send as `id` a whole number from 0 to 53 or from 56 to 63',
    example: { data: [{ type: 'rtdlplus', id: 54, value: 'Küstenwelle' }] },
    check({ items }, warn) {
      for (const { type, id, path } of items) {
        if (type === 'rtdlplus' && !isRtPlusClass(id)) warn([...path, 'id'], () => quote(id))
      }
    },
  },
  'loop.echo': {
    sentence: 'The livestream publishes again what came from it',
    remedy:
      'two houses publish for themselves what they receive from each other: publish a programme of another house [only while it is on air](publishers.md#rebroadcasting) on your own livestream',
    example: { title: 'Ebbe und Flut', artist: 'Mira Hollund' },
    exampleAmid: {
      means: 'the fourth time, each time after another livestream has published it',
      circumstances: {
        rounds: [{ livestreamId: 'urn:org:permanent-livestream:4638c4eac849c618', rounds: 3 }],
      },
    },
    check({ rounds = none }, warn) {
      for (const { livestreamId, rounds: number } of rounds) {
        // No word of the other livestream: it belongs to somebody else.
        warn(
          ['services'],
          () => `${livestreamId}, ${number} times, each time after another livestream had it`,
        )
      }
    },
  },
  'plugin.unknown': {
    sentence: 'There is no plugin target of this type',
    remedy: 'correct the entry of `plugins` or leave it out; the other targets got the event',
    example: { plugins: [{ type: 'dtss' }] },
    check({ plugins, pluginTargets }, warn) {
      for (const [index, entry] of plugins.entries()) {
        const { type, isDeactivated } = isRecord(entry) ? entry : {}
        if (isDeactivated === true || (typeof type === 'string' && pluginTargets.has(type))) continue
        // An event may have entries without a type (service.md §2.6), so this only warns.
        warn(['plugins', index, 'type'], () => {
          const expected =
            pluginTargets.size > 0
              ? `expected one of ${[...pluginTargets].join(', ')}`
              : 'there are no targets here'
          return `${type === undefined ? 'none' : quote(type)}, ${expected}; skipped`
        })
      }
    },
  },
} as const satisfies Record<string, WarningKind>

const rows: readonly [code: string, kind: WarningKind][] = Object.entries(warningTable)

/** An event as the rows of the table look at it. */
interface Seen extends Circumstances {
  /** Undefined: the event is not of class track. */
  track: TrackEvent | undefined
  /** The texts for listeners that have other characters than printable ASCII, or `&`: nothing is wrong with all others. */
  texts: readonly { path: Path; text: string }[]
  /** The items of `data` in a data event. */
  items: readonly { path: Path; type: unknown; id: unknown; value: unknown }[]
  plugins: readonly unknown[]
}

type Path = readonly (string | number)[]

/** Lists each field: spreading `circumstances` would take longer than all the rest. */
function look(event: HubEvent, { kind, time, receivedAt, pluginTargets, rounds }: Circumstances): Seen {
  // A control or data event may have a title of any type.
  const track = kind.class === 'track' && 'title' in event ? event : undefined
  const items = kind.class === 'data' ? itemsOf(event) : none
  const texts = track ? textsOf(track) : furtherTexts(event, items)
  const plugins = 'plugins' in event && Array.isArray(event.plugins) ? event.plugins : none
  return { kind, time, receivedAt, pluginTargets, rounds, track, texts, items, plugins }
}

const none: readonly never[] = []

function textsOf({ title, artist, contributors, references, media }: TrackEvent): Seen['texts'] {
  const texts: { path: Path; text: string }[] = []
  if (mayBeWrong(title)) texts.push({ path: ['title'], text: head(title) })
  if (mayBeWrong(artist)) texts.push({ path: ['artist'], text: head(artist) })
  for (const [index, { name }] of (contributors ?? none).entries())
    if (mayBeWrong(name)) texts.push({ path: ['contributors', index, 'name'], text: head(name) })
  for (const [index, { title }] of (references ?? none).entries())
    if (mayBeWrong(title)) texts.push({ path: ['references', index, 'title'], text: head(title) })
  for (const [index, { description, attribution }] of (media ?? none).entries()) {
    if (mayBeWrong(description))
      texts.push({ path: ['media', index, 'description'], text: head(description) })
    if (mayBeWrong(attribution))
      texts.push({ path: ['media', index, 'attribution'], text: head(attribution) })
  }
  return texts
}

/** The texts of a control or data event: its own fields, which are open, and the values of its items. */
function furtherTexts(event: object, items: Seen['items']): Seen['texts'] {
  const texts: { path: Path; text: string }[] = []
  for (const [field, value] of Object.entries(event))
    if (mayBeWrong(value)) texts.push({ path: [field], text: head(value) })
  for (const { path, value } of items)
    if (mayBeWrong(value)) texts.push({ path: [...path, 'value'], text: head(value) })
  return texts
}

function mayBeWrong(value: unknown): value is string {
  return typeof value === 'string' && suspicious.test(value)
}

/** `data` is an open object: the schema does not check its items. */
function itemsOf(event: object): Seen['items'] {
  const data = 'data' in event && Array.isArray(event.data) ? event.data : []
  return data.flatMap((item: unknown, index) => {
    if (!isRecord(item)) return []
    const { type, id, value } = item
    return [{ path: ['data', index], type, id, value }]
  })
}

/** So much of a text is looked at: no title is longer, and a long text must not hold others up. */
function head(text: string): string {
  return text.length > maxJudged ? text.slice(0, maxJudged) : text
}

/** Characters. */
const maxJudged = 1_000
/** An event whose start is further from the clock of the hub came late or too early, milliseconds. */
export const maxClockDifference = 30_000
/** Seconds. */
const maxLength = 24 * 3600
const maxRadiotext = 64
const maxLabelBytes = 128

/** Bounded repetitions only, in this and the next patterns: they take linear time. */
const entity =
  /&(?:#\d{1,7}|#x[\da-f]{1,6}|amp|lt|gt|quot|apos|nbsp|[a-z](?:uml|acute|grave|circ|tilde|cedil|ring|slash|caron)|szlig|[ao]elig|[lr][sd]quo|[sb][dq]quo|[lr]aquo|[nm]dash|hellip|euro|copy|reg|trade|deg|middot|bull);/i
/** Not `Mr. Wav`, and no `Mr.Wav`. */
const audioFile =
  /[^\s.]\.(?:mp[234]|wav|flac|aac|m4a|ogg|opus|wma|aiff?|bwf|MP[234]|WAV|FLAC|AAC|M4A|OGG|OPUS|WMA|AIFF?|BWF)\s?$/
/** ISO 3901, in small letters too, and with the word ISRC in front as it is printed. */
const isrcForm = /^(?:isrc:?)?[a-z]{2}[a-z\d]{3}\d{7}$/i
const gtin = /^\d{12,14}$/
const isniForm = /^(?:https?:\/\/(?:www\.)?isni\.org\/(?:isni\/)?|isni:?)?(\d{15}[\dx])\/?$/i
const separators = /[\s\p{Pd}]/gu
const https = /^\s?https:\/\//i
const dash = /\s[-–—]\s/
const suspicious = /[^ -%'-~]/

function isBlank(text: string): boolean {
  return text.trim() === ''
}

function withoutSeparators(text: string): string {
  return head(text).replace(separators, '')
}

function isIsni(text: string): boolean {
  const [, isni] = isniForm.exec(withoutSeparators(text)) ?? []
  return isni !== undefined && hasIsniCheckDigit(isni.toUpperCase())
}

/** Whether the title is `Artist - Title` or `Title - Artist`. A song may be called as its artist, or begin so. */
function repeatsArtist({ title, artist }: TrackEvent): boolean {
  if (!artist || isBlank(artist) || !dash.test(head(title))) return false
  const [whole, repeated] = [fold(title), fold(artist)]
  return dashes.some((dash) => whole.startsWith(repeated + dash) || whole.endsWith(dash + repeated))
}

const dashes = [' - ', ' – ', ' — ']

function fold(text: string): string {
  return head(text).trim().toLowerCase()
}

function overRadiotext(text: string): string | undefined {
  if (text.length <= maxRadiotext) return undefined
  let characters = 0
  for (const _ of text) characters++
  return characters > maxRadiotext ? `${characters} characters, expected at most ${maxRadiotext}` : undefined
}

function overLabel(text: string): string | undefined {
  const bytes = Buffer.byteLength(text)
  return bytes > maxLabelBytes ? `${bytes} bytes, expected at most ${maxLabelBytes}` : undefined
}

/** 54 and 55 are reserved (IEC 62106-6). */
function isRtPlusClass(id: unknown): boolean {
  return Number.isInteger(id) && Number(id) >= 0 && Number(id) <= 63 && id !== 54 && id !== 55
}
