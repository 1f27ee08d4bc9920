import { cut } from './cut.ts'

type ErrorOutcome = 'invalid' | 'blocked' | 'failed'

interface ErrorKind {
  /** `errorItem` appends the detail. The wording can change, the error code must not. */
  readonly sentence: string
  readonly outcome: ErrorOutcome
}

/** All error codes of events (design.md §7), except the codes of schema errors (`SchemaErrorCode`). */
export const errorTable = {
  'payload.json': { sentence: 'The payload is not acceptable JSON', outcome: 'invalid' },
  'payload.size': { sentence: 'The payload is too large', outcome: 'invalid' },
  'event.name': { sentence: 'The event name is not allowed here', outcome: 'invalid' },
  'event.class': { sentence: 'The event class is not permitted here', outcome: 'blocked' },
  'event.expired': { sentence: 'The control state would never be valid', outcome: 'invalid' },
  'identifier.urn': {
    sentence: 'The identifier is not a URN of the right kind',
    outcome: 'invalid',
  },
  'service.unknown': { sentence: 'The livestream is not in the feed', outcome: 'blocked' },
  'service.ambiguous': {
    sentence: 'The identifiers do not name one livestream',
    outcome: 'blocked',
  },
  'service.institution.mismatch': {
    sentence: 'The livestream belongs to another institution',
    outcome: 'blocked',
  },
  'service.institution.claim': {
    sentence: 'The service claims another institution',
    outcome: 'blocked',
  },
  'service.publisher.mismatch': {
    sentence: 'The publisher may not publish for the livestream',
    outcome: 'blocked',
  },
  'topic.created': {
    sentence: 'The livestream had no topic, and has one now',
    outcome: 'failed',
  },
  'service.failed': { sentence: 'The service could not store the event', outcome: 'failed' },
  'topic.invalid': { sentence: 'This can never be a topic here', outcome: 'invalid' },
  'topic.denied': { sentence: 'The topic is not permitted', outcome: 'blocked' },
  'feed.unavailable': {
    sentence: 'The livestream feed is not available',
    outcome: 'blocked',
  },
} as const satisfies Record<string, ErrorKind>

/** The JSON Schema keyword that failed comes first, as in `required.openapi.validation`. */
type SchemaErrorCode = `${string}.openapi.validation`

/** Every error code of an event. */
type ErrorCode = keyof typeof errorTable | SchemaErrorCode

/** One error as publishers read it, over MQTT and over HTTPS (service.md §7). */
export interface ErrorItem {
  /** Path of the faulty value in the event, like `.services.0.id`; `.` is the payload as a whole. */
  path: string
  message: string
  errorCode: string
}

/**
 * Builds an error item; `detail` names the wrong and the expected value. Control characters in `detail` are escaped: a
 * publisher may have sent them.
 */
export function errorItem(code: ErrorCode, path: string, detail?: string): ErrorItem {
  return itemOf(code, kindOfError(code).sentence, path, detail)
}

/** Builds an item as `errorItem` does, for the tables of warnings: each has the sentences of its own codes. */
export function itemOf(code: string, sentence: string, path: string, detail?: string): ErrorItem {
  const message = detail === undefined ? sentence : `${sentence}: ${printable(detail, maxDetail)}`
  return { path, message, errorCode: code }
}

/** The outcome of an event with this error. */
export function outcomeOf(errorCode: string): ErrorOutcome {
  return kindOfError(errorCode).outcome
}

/** Formats a publisher's value for an error message: printable, at most 80 characters. */
export function quote(value: unknown): string {
  if (typeof value === 'string') return `"${printable(value, maxQuoted)}"`
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  return printable(String(value), maxQuoted)
}

/** Path of a value in an event, printable and cut to `maxPath` characters. */
export function pathOf(...segments: readonly (string | number)[]): string {
  let path = '.'
  for (const [index, segment] of segments.entries()) {
    path += `${index > 0 ? '.' : ''}${printable(String(segment), maxQuoted)}`
    if (path.length > maxPath) return `${cut(path, maxPath - 1)}…`
  }
  return path
}

export type ErrorList = ReturnType<typeof createErrorList>

/**
 * Lists the errors or warnings of an event, up to `maxErrors` and `maxErrorBytes`. Without these bounds, a report could
 * be much larger than its event. If errors are left out, one more item tells how many. `noun`: what the items are, for that item.
 */
export function createErrorList(noun = 'errors') {
  const listed: ErrorItem[] = []
  /** Code of the first error for which the list had no room. */
  let omittedCode: string | undefined
  let bytes = 0
  let count = 0
  return {
    isFull: () => omittedCode !== undefined,
    /** Takes a function: a hostile event has too many errors to build them all. */
    add(make: () => ErrorItem): void {
      count++
      if (omittedCode !== undefined) return
      const item = make()
      bytes += Buffer.byteLength(JSON.stringify(item))
      if (listed.length < maxErrors && bytes <= maxErrorBytes) listed.push(item)
      else omittedCode = item.errorCode
    },
    /** Counts an error that the caller did not build, because `isFull` had returned true. */
    omit(): void {
      count++
    },
    items(): ErrorItem[] {
      if (omittedCode === undefined) return listed
      const message = `Not listed: at least ${count - listed.length} more ${noun}`
      return [...listed, { path: '.', message, errorCode: omittedCode }]
    },
  }
}

/** Maximum number of errors listed one by one. Building an error takes as long as deciding about an event. */
export const maxErrors = 100
/** Maximum size of the listed errors as JSON, bytes. A hundred ordinary errors are smaller. */
const maxErrorBytes = 64 * 1024
/** Longest path, characters. A deeply nested value can have sixty names in its path. */
const maxPath = 300
const maxQuoted = 80
/** Longest detail, characters: enough for two quoted identifiers and some words. */
const maxDetail = 400

const schemaSuffix = '.openapi.validation'
const schemaSentences: ReadonlyMap<string, string> = new Map([
  ['required', 'A required field is missing'],
  ['additionalProperties', 'The field is not known here'],
  ['type', 'The value has the wrong type'],
  ['enum', 'The value is not one of those allowed'],
  ['const', 'The value is not the one allowed'],
  ['format', 'The value has the wrong format'],
  ['pattern', 'The value has the wrong form'],
  ['exclusiveMinimum', 'The number is too small'],
  ['minItems', 'The list is too short'],
  ['maxItems', 'The list is too long'],
  ['minLength', 'The text is too short'],
  ['maxLength', 'The text is too long'],
])

const table: ReadonlyMap<string, ErrorKind> = new Map(Object.entries(errorTable))

function kindOfError(code: string): ErrorKind {
  const known = table.get(code)
  if (known !== undefined) return known
  const keyword = code.endsWith(schemaSuffix) ? code.slice(0, -schemaSuffix.length) : code
  const sentence = schemaSentences.get(keyword) ?? 'The value is not allowed'
  return { sentence, outcome: 'invalid' }
}

/** `text` with control and invisible characters written as escapes, cut to `limit` characters. */
function printable(text: string, limit: number): string {
  // Cut before escaping too: escaping all of a long text would waste time.
  const escaped = cut(text, limit + 1).replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`
  })
  return escaped.length > limit ? `${cut(escaped, limit - 1)}…` : escaped
}
