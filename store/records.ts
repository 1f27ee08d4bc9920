import { createPrivateKey, createPublicKey } from 'node:crypto'
import {
  anything,
  type Form,
  fields,
  flag,
  instant,
  integer,
  list,
  number,
  object,
  oneOf,
  orNull,
  text,
  tuple,
  webUrl,
} from './record-form.ts'
import type { StoredRecord } from './store.ts'

/*
 * What the keys and values of the store look like, one row for each family of keys. An import and a start judge each
 * record by its row, with `problemOf`: so no start stops at a record that an import has let through.
 *
 * A row demands what the code that reads the record relies on, and no more: a backup of an earlier beta stays good.
 */

/** What follows the word of its family in a key. */
interface Key {
  form: RegExp
  /** The form in words. */
  expected: string
  /** The key has names that are written as `encodeURIComponent` writes them. */
  isEncoded?: true
}

/** The records whose keys begin with the same word. */
interface Family {
  key: Key
  /** Says what the value must be, if it is not. */
  value: (value: Buffer) => string | undefined
  /** Only nodes that use the store now need the records: no export has them. */
  isOfNodes?: true
}

const named: Key = { form: /^[^/]+$/, expected: 'a name', isEncoded: true }
const numbered: Key = { form: /^[^/]+\/\d{16}$/, expected: 'a name and 16 digits', isEncoded: true }
const word = (expected: string): Key => ({ form: new RegExp(`^${expected}$`), expected })
const alone: Key = { form: /^$/, expected: 'nothing' }
const anyKey: Key = { form: /^/, expected: 'anything' }
const ofNodes = { isOfNodes: true } as const
const position = 'a position of 16 digits'

const place = {
  required: { upTo: number, owed: list(tuple(number, oneOf(0, 1, 2), number)) },
  optional: { lost: number, replay: number },
}
const excerpt = object(
  { bytes: number, kept: integer(0), title: orNull(text), artist: orNull(text) },
  { refusedServices: list(text) },
)
const queueRule = object({ keep: oneOf('latest', 'every') }, { time: number, expires: number })
const principal: Form = (value) => {
  const role = object({ role: oneOf('publisher', 'subscriber'), username: text })(value)
  if (role !== undefined) return role
  return object({ role: oneOf('publisher') })(value) === undefined
    ? object({ institutions: list(text), classes: list(text) })(value)
    : object({ filters: list(text) }, { temporaryOf: text })(value)
}
const attempt = object({
  ...{ messageId: text, time: instant, status: orNull(number), duration: number, reason: orNull(text) },
})
const item = {
  ...{ sequence: integer(0), messageId: text, details: object({}), enqueuedAt: number },
  ...{ tries: number, refusals: number, attempts: list(attempt) },
}
const timesOfItem = { acceptedAt: number, asideUntil: number, begun: number }
const indexed = {
  key: numbered,
  value: json(
    object(
      { qos: oneOf(0, 1, 2), bytes: number, at: number },
      { ...{ topic: text, expires: number, sharedUpTo: integer(1) }, isReport: flag, hasErrors: flag },
    ),
  ),
}

/** The families by the part of their keys up to the first slash, or by the whole key if it has none. */
export const families: ReadonlyMap<string, Family> = new Map(
  Object.entries<Family>({
    'credential/': {
      key: named,
      value: json(
        object(
          {
            ...{ username: text, role: oneOf('publisher', 'subscriber'), label: text, createdAt: instant },
            ...{ institutions: list(text), filters: list(text), classes: list(text), salt: text, hash: text },
          },
          {
            ...{ revokeAt: instant, user: text },
            login: object({ userId: text, generation: number }, { loginId: text }),
          },
        ),
      ),
    },
    'credential-use/': { key: named, value: json(object({ lastAt: instant })) },
    'credential-name/': { key: anyKey, value: anything },
    'user/': {
      key: named,
      value: json(
        object(
          {
            ...{
              userId: text,
              email: text,
              institutionId: text,
              permissions: list(text),
              createdAt: instant,
            },
            generation: number,
            resets: list(object({ channel: text, hash: text, expiresAt: instant })),
          },
          {
            ...{ emailVerified: flag, passwordHash: text },
            endedLogins: list(object({ id: text, expiresAt: instant })),
          },
        ),
      ),
    },
    'familiar-place/': { key: named, value: json(object({ at: number })) },
    'signing-key/': {
      key: named,
      value: json(
        object(
          {
            kid: text,
            createdAt: instant,
            privateJwk: jwk(createPrivateKey),
            publicJwk: jwk(createPublicKey),
          },
          { signsFrom: instant },
        ),
      ),
    },
    'subscription/': {
      key: named,
      value: json(
        object(
          {
            ...{ name: text, topicId: text, url: text, contact: text, institutionId: text },
            ...{ serviceAccount: text, createdAt: instant },
          },
          {
            ...{ ackDeadlineSeconds: number, retryPolicy: orNull(text), createdBy: text, from: instant },
            ...{ isBeginning: flag, disabledAt: instant, pausedAt: instant, pausedBy: text, toldBy: text },
          },
        ),
      ),
    },
    'lifecycle/': {
      key: named,
      value: json(
        object(
          {
            ...{ track: text, state: oneOf('live', 'deprecated', 'gone'), announcedAt: orNull(instant) },
            ...{ sunset: orNull(instant), link: orNull(webUrl), retiredAt: orNull(instant) },
          },
          // Earlier releases knew no brown-outs.
          { brownoutUntil: orNull(instant) },
        ),
      ),
    },
    'traffic/': {
      key: named,
      value: json(object({ track: text, route: text, day: text, requests: number })),
    },
    'last-request/': {
      key: named,
      value: json(
        object({ track: text, route: text, userId: text, email: text, institutionId: text, lastAt: instant }),
      ),
    },
    'topic/': {
      key: anyKey,
      value: json(object({ id: text, createdAt: instant }, { institutionId: text, folded: text })),
    },
    'session/': {
      key: named,
      value: json(
        object(
          {
            ...{ clientId: text, clean: flag, permission: text, principal, createdAt: number },
            ...{ version: number, dropped: number, ...place.required },
            subscriptions: list(tuple(text, oneOf(0, 1, 2), number)),
          },
          { ...{ node: text, disconnectedAt: number, offlineAt: number }, ...place.optional },
        ),
      ),
    },
    'incoming/': {
      key: { form: /^[^/]+\/\d{1,5}$/, expected: 'a name and a packet identifier', isEncoded: true },
      value: matching(/^\d+(\.\d+)?$/, 'a number'),
    },
    'outgoing/': {
      key: {
        ...{ form: /^[^/]+\/\d{16}(\/released)?$/, isEncoded: true },
        expected: 'a name, 16 digits and perhaps /released',
      },
      // That a message is released is in the key alone.
      value: (value) =>
        value.length === 0
          ? undefined
          : headed(object({ topic: text, queue: queueRule, retain: flag, session: number }))(value),
    },
    'progress/': {
      key: { form: /^[^/]+$/, expected: 'a name' },
      value: json(
        object(
          {
            ...{ version: number, upTo: number },
            unsettled: fields(
              orNull(object({ ...place.required, createdAt: number }, { ...place.optional })),
            ),
          },
          { end: object({ head: number, ran: number }) },
        ),
      ),
    },
    'will/': {
      key: { form: /^[^/]+\/[^/]+$/, expected: 'two names', isEncoded: true },
      value: headed(object({ node: text, clientId: text, principal, topic: text }, { retain: flag })),
    },
    'time/': { key: word('hub'), value: json(object({ ran: number, wall: number })) },
    'journal/': {
      key: { form: /^\d{16}$/, expected: '16 digits' },
      value: headed(
        object(
          { topic: text, qos: oneOf(0, 1, 2), queue: queueRule, at: number },
          {
            ...{ stream: text, institutionId: text, isReport: flag, isRepetition: flag, hasErrors: flag },
            // 0 would say that the message has its payload from itself: its reader would never end.
            ...{ sharedWith: integer(1), refused: excerpt, creator: text },
            retained: object({ slot: text, time: number }, { expires: number }),
          },
        ),
      ),
    },
    'every/': indexed,
    'latest/': indexed,
    'retained/': {
      key: { form: /^[^\n]*\n".*"$/s, expected: 'a topic, a line break and a slot as JSON' },
      value: matching(/^\d{16}/, position),
    },
    'ended/': { key: anyKey, value: anything },
    'cleared/': { key: anyKey, value: matching(/^\d{16}/, position) },
    'clock-behind': { key: alone, value: matching(/^\d{16}/, position) },
    'trimming/': {
      key: word('state'),
      value: json(
        object({
          ...{ floor: number, passed: number, historyFrom: number, historyBytes: number },
          window: list(object({ upTo: number, bytes: number, at: number })),
          round: object({ at: text, bytes: number }),
        }),
      ),
    },
    'work/': { key: numbered, value: positioned(object(item, timesOfItem)) },
    'work-dead/': {
      key: numbered,
      value: positioned(object({ ...item, givenUpAt: instant, reason: text }, timesOfItem)),
    },
    'work-seen/': { key: anyKey, value: matching(/^\d+(\.\d+)? /, 'a time and an id') },
    'attempt/': { key: numbered, value: json(attempt) },
    'push-standing/': {
      key: named,
      value: json(
        object(
          { state: oneOf('active', 'retrying'), since: instant, reason: orNull(text) },
          { gone: object({ at: number, ms: number }) },
        ),
      ),
    },
    // What cannot be read of these is ignored: `validator/feed/stored-feeds.ts`.
    'feed/': { key: anyKey, value: anything },
    'audit/': {
      key: anyKey,
      // The embedded store keeps the audit log in a file of lines.
      value: (value) =>
        value.includes(10)
          ? 'a single line'
          : json(object({ at: instant, who: text, action: text, target: text }))(value),
    },
    'health/': { key: anyKey, value: anything },
    'member/': {
      ...{ key: { form: /^\d+$/, expected: 'digits' }, ...ofNodes },
      value: json(object({ node: text, name: text, number })),
    },
    'lock/': { key: anyKey, ...ofNodes, value: json(object({ number, claim: orNull(text) })) },
    'work-lease/': { key: anyKey, ...ofNodes, value: anything },
    'import/': { key: anyKey, ...ofNodes, value: anything },
    number: { key: alone, value: matching(/^\d+$/, 'a number') },
    format: { key: alone, value: matching(/^\d+$/, 'a number') },
  }),
)

/**
 * Why no node could read a record: its key and what is expected. Undefined: a node can read it, or no node of this
 * release reads its family.
 */
export function problemOf({ key, value }: StoredRecord): string | undefined {
  const word = wordOf(key)
  const family = families.get(word)
  if (!family) return undefined
  const expected = keyProblem(key.slice(word.length), word, family.key) ?? (value && family.value(value))
  return (
    expected &&
    `the record ${JSON.stringify(key.slice(0, 200))} of ${JSON.stringify(word)} cannot be read, expected ${expected}`
  )
}

/** Whether only the nodes that use the store now need a record, so that no export has it. */
export function isOfNodes(key: string): boolean {
  return families.get(wordOf(key))?.isOfNodes ?? false
}

function wordOf(key: string): string {
  return key.slice(0, key.indexOf('/') + 1) || key
}

function keyProblem(rest: string, word: string, { form, expected, isEncoded }: Key): string | undefined {
  const problem = `a key that has ${expected} behind ${word}`
  if (!form.test(rest)) return problem
  if (!isEncoded) return undefined
  try {
    decodeURIComponent(rest)
    return undefined
  } catch {
    return `${problem}, percent-encoded`
  }
}

/** A value that is nested much deeper can be read, but not written again: `JSON.stringify` throws. */
const maxDepth = 100

function json(form: Form): Family['value'] {
  return (value) => {
    if (isDeeper(value, maxDepth)) return `JSON that is nested at most ${maxDepth} deep`
    try {
      return form(JSON.parse(value.toString()))
    } catch {
      return form(undefined)
    }
  }
}

function isDeeper(json: Buffer, most: number): boolean {
  // A level takes two bytes, so that most values need no look.
  if (json.length <= 2 * most) return false
  let depth = 0
  let isInText = false
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (isInText && byte === backslash) at++
    else if (byte === quote) isInText = !isInText
    else if (!isInText && (byte === bracket || byte === brace) && ++depth > most) return true
    else if (!isInText && (byte === closingBracket || byte === closingBrace)) depth--
  }
  return false
}

const [quote, backslash, bracket, closingBracket, brace, closingBrace] = Buffer.from('"\\[]{}')

/** A value of `encodeValue`: JSON up to the first line break. */
function headed(form: Form): Family['value'] {
  return (value) => {
    const end = value.indexOf(10)
    return end < 0 ? 'a JSON object, a line break and bytes' : json(form)(value.subarray(0, end))
  }
}

/** A position of 16 digits, then a value of `encodeValue`. */
function positioned(form: Form): Family['value'] {
  return (value) => matching(/^\d{16}/, position)(value) ?? headed(form)(value.subarray(16))
}

function matching(form: RegExp, expected: string): Family['value'] {
  return (value) => (form.test(value.toString()) ? undefined : expected)
}

/** A key as JSON (RFC 7517) that can sign, or verify. */
function jwk(read: (of: { key: Record<string, string>; format: 'jwk' }) => unknown): Form {
  return (value) => {
    const expected = object({ kty: oneOf('RSA'), n: text, e: text })(value)
    if (expected !== undefined) return expected
    try {
      read({ key: value as Record<string, string>, format: 'jwk' })
      return undefined
    } catch {
      return 'a key as JSON'
    }
  }
}
