import type { TSchema } from 'typebox'
import { Type } from './type.ts'

/*
 * What answers of the HTTPS API and of commands are made of. A field without a sentence is what its name says.
 */

export const string = Type.String()
export const integer = Type.Integer()
export const number = Type.Number()
export const boolean = Type.Boolean()
export const texts = Type.Array(string)
export const instant = Type.String({
  format: 'date-time',
  description: 'an instant in ISO 8601',
  examples: ['2026-01-31T12:00:00.000Z'],
})
export const instantOrNull = orNull(instant)
export const stringOrNull = orNull(string)

/** Null: unknown, none or not yet, as the field or its description says. */
export function orNull<Schema extends TSchema>(schema: Schema, description?: string) {
  return Type.Union([schema, Type.Null()], description === undefined ? {} : { description })
}

/** A text that is one of the given ones. */
export function one<Value extends string>(...values: readonly Value[]) {
  return Type.Unsafe<Value>({ type: 'string', enum: values })
}

/** An object whose keys are not known before. */
export function recordOf<Schema extends TSchema>(value: Schema) {
  return Type.Record(string, value)
}
