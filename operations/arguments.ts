import type { TSchema } from 'typebox'
import { tracks } from '../bridge-https/lifecycle/track.ts'
import { instantPattern, maxUrnLength } from '../event/format.ts'
import { Type } from '../event/type.ts'
import { type Outcome, outcomes } from '../journal/history/event-row.ts'

/*
 * The arguments of commands. Their descriptions complete the sentence "<argument> must be …". Over HTTPS, the hub
 * answers with 400 to an argument that does not match its schema, and with 409 to what the command itself refuses.
 */

/** A list in words: `a, b or c`. */
export function eitherOf(values: readonly string[]): string {
  return values.join(', ').replace(/, (?=[^,]*$)/, ' or ')
}

/** The text of a judgement that is an error. Else undefined. */
export function errorOf(judged: object): string | undefined {
  return 'error' in judged ? String(judged.error) : undefined
}

/** An argument that is a text, and not empty. */
export function text(description: string, maxLength = 500) {
  return Type.String({ minLength: 1, maxLength, description })
}

/** An argument that is a list. */
export function listOf<Item extends TSchema>(description: string, item: Item) {
  return Type.Array(item, { maxItems: 10_000, description: `a list of ${description}` })
}

/** An argument that is one of the given texts. */
export function oneOf<Value extends string>(...values: readonly Value[]) {
  return Type.Unsafe<Value>({ type: 'string', enum: values, description: `one of ${values.join(', ')}` })
}

export const username = text('the name of a credential')
export const institution = Type.String({
  pattern: '^urn:org:institution:[a-z0-9-]+$',
  maxLength: maxUrnLength,
  description: 'an institution URN (urn:org:institution:<id>)',
})
export const livestream = text('the id, external id or title of a livestream')
export const email = Type.String({ format: 'email', maxLength: 254, description: 'an e-mail address' })
export const clientId = text('a client id', 65_535)
export const topic = text('a topic', 65_535)
export const queue = text('the name of a queue, or its beginning')
export const track = oneOf(...tracks)
export const subscription = text('the name of a subscription')
const anInstant = 'an instant such as 2026-03-01T18:02:00+01:00'
export const instant = Type.String({ pattern: instantPattern, maxLength: 100, description: anInstant })
/** A place in the journal. Its number is exact up to the maximum. */
export const position = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'a position: `next` of the page before',
})
export const positionOrInstant = Type.Union([position, instant], {
  description: `${anInstant}, or a position`,
})
export const dateOrInstant = Type.String({
  pattern: `^\\d{4}-\\d\\d-\\d\\d$|${instantPattern}`,
  maxLength: 100,
  description: 'a date such as 2027-12-31 or an instant such as 2027-12-31T12:00:00Z',
})
export const url = Type.String({
  pattern: '^https?://[!-~]+$',
  maxLength: 2_000,
  description: 'an http or https URL',
})
export const label = Type.String({ pattern: '^[a-z0-9-]{1,32}$', description: '1 to 32 of a-z, 0-9 and "-"' })
/** A topic filter within `radio/#`, without empty levels. */
export const radioFilter = Type.String({
  pattern: '^radio(/(\\+|[^/+#\u0000]+))*(/#)?$',
  maxLength: 65_535,
  description: 'a topic filter within radio/#',
})
export const limit = Type.Optional(Type.Integer({ minimum: 1, description: 'a whole number from 1' }))
/** The limit of a command that answers page by page. */
export const pageLimit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 1_000, description: 'a whole number from 1 to 1000' }),
)
/** The arguments that select events. */
export const ofEvents = {
  livestream: Type.Optional(livestream),
  institution: Type.Optional(institution),
  outcome: Type.Optional(oneOf<Outcome>(...outcomes)),
  item: Type.Optional(text('a playlistItemId')),
}
