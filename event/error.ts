import { cut } from './cut.ts'

type ErrorOutcome = 'invalid' | 'blocked' | 'failed'

/** The checks of an event, in their order. An event that fails one with `ends` gets to none behind it. */
export const checks = {
  topic: { does: 'the topic is one to publish to', ends: true },
  size: { does: 'the event is not too large', ends: true },
  json: { does: 'it is one JSON object', ends: true },
  shape: { does: 'its fields are those of its kind', ends: true },
  class: { does: 'its class is permitted there', ends: false },
  feed: { does: 'there is a livestream feed', ends: true },
  ownership: { does: 'its livestreams belong to the institution', ends: false },
  'topic of the livestream': { does: 'the livestream has a topic', ends: false },
  storing: { does: 'the hub could store it', ends: true },
} as const
export type Check = keyof typeof checks

interface ErrorKind {
  /** `errorItem` appends the detail. The wording can change, the error code must not. */
  readonly sentence: string
  readonly outcome: ErrorOutcome
  /** The check that finds it. */
  readonly check: Check
  /** What the publisher should do, for the documentation: Markdown, links from `docs/`. */
  readonly remedy: string
}

/** All error codes of events (design.md §7), except those of schema errors (`schemaErrorTable`). */
export const errorTable = {
  'payload.json': {
    sentence: 'The payload is not acceptable JSON',
    outcome: 'invalid',
    check: 'json',
    remedy:
      'send one JSON object in UTF-8 without byte order mark; no key twice, no escape that is half a character (`\\ud83c` without its second half), no number beyond ±9007199254740991, at most 64 levels deep and 10,000 values',
  },
  'payload.size': {
    sentence: 'The payload is too large',
    outcome: 'invalid',
    check: 'size',
    remedy:
      'stay within 409600 bytes, and 8 MiB over all livestreams; link to pictures instead of embedding them',
  },
  'event.name': {
    sentence: 'The event name is not allowed here',
    outcome: 'invalid',
    check: 'shape',
    remedy: 'use one of the names of events, spelled exactly so',
  },
  'event.class': {
    sentence: 'The event class is not permitted here',
    outcome: 'blocked',
    check: 'class',
    remedy: 'use the inbox of the right class, or ask the operator for a credential with this class',
  },
  'event.expired': {
    sentence: 'The control state would never be valid',
    outcome: 'invalid',
    check: 'shape',
    remedy:
      '`validUntil` has passed, or is not later than `time`; the message says which. Check your clock, or leave the event out, it is of no use any more',
  },
  'identifier.urn': {
    sentence: 'The identifier is not a URN of the right kind',
    outcome: 'invalid',
    check: 'shape',
    remedy:
      'send URNs of at most 200 characters: `urn:org:publisher:…`, `urn:org:institution:…`, `urn:org:permanent-livestream:…`',
  },
  'service.unknown': {
    sentence: 'The livestream is not in the feed',
    outcome: 'blocked',
    check: 'ownership',
    remedy:
      'the feed has no such livestream: check the identifier; a new livestream appears with the next refresh of the feed. Over HTTPS: your institution has 2,000 livestreams outside of the feed already',
  },
  'service.ambiguous': {
    sentence: 'The identifiers do not name one livestream',
    outcome: 'blocked',
    check: 'ownership',
    remedy: 'send `id` and `externalId` that belong to one livestream',
  },
  'service.institution.mismatch': {
    sentence: 'The livestream belongs to another institution',
    outcome: 'blocked',
    check: 'ownership',
    remedy:
      "the livestream is another institution's: use its inbox if you work for it as well. Over HTTPS also a livestream that is [not in the feed](https.md#livestreams-outside-of-the-feed), or an external id that reads like one of theirs",
  },
  'service.institution.claim': {
    sentence: 'The service claims another institution',
    outcome: 'blocked',
    check: 'ownership',
    remedy: '`institutionId` must be the one of the topic',
  },
  'service.publisher.mismatch': {
    sentence: 'The publisher may not publish for the livestream',
    outcome: 'blocked',
    check: 'ownership',
    remedy:
      'send the publisher that the feed names for the livestream; for one of your own the message has it. Over HTTPS, for a livestream that is not in the feed, a publisher of your institution',
  },
  'topic.created': {
    sentence: 'The livestream had no topic, and has one now',
    outcome: 'failed',
    check: 'topic of the livestream',
    remedy: 'over HTTPS only: the first event of a livestream makes its topic. Send it again',
  },
  'service.failed': {
    sentence: 'The service could not store the event',
    outcome: 'failed',
    check: 'storing',
    remedy:
      'the hub could not store the event and closes the connection without acknowledging it: connect and send it again',
  },
  'topic.invalid': {
    sentence: 'This can never be a topic here',
    outcome: 'invalid',
    check: 'topic',
    remedy: 'correct the topic: no dots, white space, control characters, empty levels; at most 100 levels',
  },
  'topic.denied': {
    sentence: 'The topic is not permitted',
    outcome: 'blocked',
    check: 'topic',
    remedy: 'publish to the inbox of your institution; ask the operator if it should be yours',
  },
  'feed.unavailable': {
    sentence: 'The livestream feed is not available',
    outcome: 'blocked',
    check: 'feed',
    remedy: 'the hub has no feed yet: send the event again later',
  },
} as const satisfies Record<string, ErrorKind>

/** The codes of schema errors: `required` is `required.openapi.validation`. Their outcome is `invalid`. */
export const schemaErrorTable = {
  required: { sentence: 'A required field is missing', remedy: 'add the field that `path` names' },
  additionalProperties: {
    sentence: 'The field is not known here',
    remedy: 'remove the field that `path` names, or correct its spelling',
  },
  type: {
    sentence: 'The value has the wrong type',
    remedy: 'send the type that the message names; null only where it is allowed',
  },
  enum: {
    sentence: 'The value is not one of those allowed',
    remedy: 'choose one of the values in the message',
  },
  anyOf: { sentence: 'The value has none of the forms allowed', remedy: 'send what the message names' },
  const: { sentence: 'The value is not the one allowed', remedy: 'send the value that the message names' },
  format: {
    sentence: 'The value has the wrong format',
    remedy:
      'write it as the message says: a time in one of the forms of [times](publishers.md#times), a URL as a URL',
  },
  pattern: {
    sentence: 'The value has the wrong form',
    remedy: 'write the identifier in the form that the message names',
  },
  exclusiveMinimum: {
    sentence: 'The number is too small',
    remedy: 'send a number greater than 0 for `length` and `cycle`',
  },
  minimum: { sentence: 'The number is too small', remedy: 'send at least the number that the message names' },
  maximum: { sentence: 'The number is too large', remedy: 'send at most the number that the message names' },
  minItems: { sentence: 'The list is too short', remedy: 'name at least one service' },
  maxItems: { sentence: 'The list is too long', remedy: 'name at most 200 livestreams: send two events' },
  minLength: {
    sentence: 'The text is too short',
    remedy: 'send a text with as many characters as the message names',
  },
  maxLength: {
    sentence: 'The text is too long',
    remedy: 'give the control state a `name` of at most 500 characters',
  },
} as const satisfies Record<string, Pick<ErrorKind, 'sentence' | 'remedy'>>

/** The JSON Schema keyword that failed comes first, as in `required.openapi.validation`. */
type SchemaErrorCode = `${string}.openapi.validation`

/** The check that finds an error. Undefined: no error of an event has this code. */
export function checkOf(errorCode: string): Check | undefined {
  return errorCode.endsWith(schemaSuffix) ? 'shape' : table.get(errorCode)?.check
}

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

/**
 * Lists the errors or warnings of an event, up to `maxErrors` and `maxErrorBytes`. Without these bounds, a report could
 * be much larger than its event. If errors are left out, one more item tells how many. `noun`: what the items are, for that item.
 *
 * A class: every event has five lists, and most stay empty.
 */
export class ErrorList {
  readonly #noun: string
  readonly #listed: ErrorItem[] = []
  /** Code of the first error for which the list had no room. */
  #omittedCode: string | undefined
  #bytes = 0
  #count = 0

  constructor(noun = 'errors') {
    this.#noun = noun
  }

  get isEmpty(): boolean {
    return this.#count === 0
  }

  get isFull(): boolean {
    return this.#omittedCode !== undefined
  }

  /** Takes a function: a hostile event has too many errors to build them all. */
  add(make: () => ErrorItem): void {
    this.#count++
    if (this.isFull) return
    const item = make()
    this.#bytes += Buffer.byteLength(JSON.stringify(item))
    if (this.#listed.length < maxErrors && this.#bytes <= maxErrorBytes) this.#listed.push(item)
    else this.#omittedCode = item.errorCode
  }

  /** Counts an error that the caller did not build, because the list is full. */
  omit(): void {
    this.#count++
  }

  items(): ErrorItem[] {
    if (this.#omittedCode === undefined) return this.#listed
    const message = `Not listed: at least ${this.#count - this.#listed.length} more ${this.#noun}`
    return [...this.#listed, { path: '.', message, errorCode: this.#omittedCode }]
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

const schemaTable: ReadonlyMap<string, { sentence: string }> = new Map(Object.entries(schemaErrorTable))

const table: ReadonlyMap<string, ErrorKind> = new Map(Object.entries(errorTable))

function kindOfError(code: string): Pick<ErrorKind, 'sentence' | 'outcome'> {
  const known = table.get(code)
  if (known !== undefined) return known
  const keyword = code.endsWith(schemaSuffix) ? code.slice(0, -schemaSuffix.length) : code
  const sentence = schemaTable.get(keyword)?.sentence ?? 'The value is not allowed'
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
