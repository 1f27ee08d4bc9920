import { type Form, object, oneOf, text } from './record-form.ts'

/** Says what a stored value must be, if it is not. `name`: the last name in its key. Undefined: the value is right. */
export type ValueForm = (value: Buffer, name: string) => string | undefined

/** A value that is nested much deeper can be read, but not written again: `JSON.stringify` throws. */
const maxDepth = 100

/**
 * `named`: the field that is in the key as well. A node that goes by the field would remove or replace another record
 * than this one, so that a revoked credential would be back after a restart.
 */
export function json(form: Form, named?: string): ValueForm {
  return (value, name) => {
    if (isDeeper(value, maxDepth)) return `JSON that is nested at most ${maxDepth} deep`
    try {
      const read: unknown = JSON.parse(value.toString())
      const expected = form(read)
      if (expected !== undefined || named === undefined) return expected
      const field: unknown = Reflect.get(Object(read), named)
      const isSame = typeof field === 'number' ? field === Number(name) : field === name
      return isSame ? undefined : `a JSON object whose ${JSON.stringify(named)} is that of the key`
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
export function headed(form: Form, named?: string): ValueForm {
  const head = json(form, named)
  return (value, name) => {
    const end = value.indexOf(10)
    return end < 0 ? 'a JSON object, a line break and bytes' : head(value.subarray(0, end), name)
  }
}

export const position = 'a position of 16 digits'

/** A position of 16 digits, then a value of `encodeValue`. */
export function positioned(form: Form, named?: string): ValueForm {
  const [start, rest] = [matching(/^\d{16}/, position), headed(form, named)]
  return (value, name) => start(value, name) ?? rest(value.subarray(16), name)
}

export function matching(form: RegExp, expected: string): ValueForm {
  return (value) => (form.test(value.toString()) ? undefined : expected)
}

/** A key as JSON (RFC 7517) that can sign, or verify. */
export function jwk(read: (of: { key: Record<string, string>; format: 'jwk' }) => unknown): Form {
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
