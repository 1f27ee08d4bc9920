import type { TSchema, TUnsafe } from 'typebox'
import { Type } from '../event/type.ts'

/*
 * Schemas of the values of settings. An error message quotes the description of a schema after "expected".
 */

export function text() {
  return Type.String({ minLength: 1, description: 'a text that is not empty' })
}

export function formatted(format: string, description: string) {
  return Type.String({ minLength: 1, format, description })
}

/** The same, but nobody is shown its value: `config/mask.ts`. */
export function secret<Schema extends TSchema>(schema: Schema): Schema {
  return { ...schema, writeOnly: true }
}

export function httpsUrl() {
  return formatted('https-url', 'an https URL')
}

export function flag() {
  return Type.Boolean({ description: 'true or false' })
}

export function whole(minimum: number, maximum = Number.MAX_SAFE_INTEGER) {
  const limit =
    maximum === Number.MAX_SAFE_INTEGER ? `${minimum} or greater` : `from ${minimum} to ${maximum}`
  return Type.Integer({ minimum, maximum, description: `a whole number, ${limit}` })
}

/** A whole number, or `auto`. */
export function wholeOrAuto(minimum: number, maximum: number) {
  // Equal descriptions: a wrong value breaks both schemas, and is reported once.
  const description = `a whole number, from ${minimum} to ${maximum}, or auto`
  return Type.Union(
    [Type.Integer({ minimum, maximum, description }), Type.Literal('auto', { description })],
    { description },
  )
}

export function oneOf<T extends string>(values: readonly T[]): TUnsafe<T> {
  return Type.Unsafe<T>({ type: 'string', enum: values, description: `one of ${values.join(', ')}` })
}
