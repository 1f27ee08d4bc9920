import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { TSchema } from 'typebox'
import { type ErrorItem, errorItem, pathOf, quote } from '../event/error.ts'
import { parseJson } from '../event/json.ts'
import { emailPattern } from '../users/user.ts'
import { belowBody } from './answer.ts'

/** The kinds of body a route takes: one of them fits, the errors speak of the nearest. */
export type BodySchemas = readonly [TSchema, ...TSchema[]]

/** A check for bodies of these shapes. Their schemas are those of the description. */
export function compileBody(
  schemas: BodySchemas,
): (payload: Buffer) => { value: unknown } | { errors: ErrorItem[] } {
  const variants = schemas.map((schema) => ({ names: namesOf(schema), validate: ajv.compile(schema) }))

  return (payload) => {
    const parsed = parseJson(payload)
    if ('errors' in parsed) return { errors: belowBody(parsed.errors) }
    const { value } = parsed
    const [first] = variants
    const meant =
      variants.find(({ names }) => names.some((name) => Object.hasOwn(Object(value), name))) ?? first
    if (!meant || meant.validate(value)) return { value }
    return { errors: belowBody(describeAll(meant.validate)) }
  }
}

function describeAll({ errors }: ValidateFunction): ErrorItem[] {
  // A value of the wrong type is one error, not also one that is another constant.
  const own = (errors ?? []).filter(({ keyword, data }) => keyword !== 'const' || typeof data === 'string')
  return own.map(({ keyword, instancePath, params, data, parentSchema }: ErrorObject) => {
    const missing: unknown = params.missingProperty
    const segments = instancePath.split('/').slice(1)
    const path = pathOf(...segments, ...(typeof missing === 'string' ? [missing] : []))
    const expected: unknown = parentSchema?.description
    const detail =
      typeof missing === 'string'
        ? `expected ${quote(missing)}`
        : `got ${secret.test(path) ? 'it' : quote(data)}, expected ${expected ?? 'another value'}`
    return errorItem(`${keyword}.openapi.validation`, path, detail)
  })
}

/** Never repeated in an answer, which may end up in a log. */
const secret = /password|token/i

function namesOf(schema: TSchema): string[] {
  return 'properties' in schema ? Object.keys(Object(schema.properties)) : []
}

const ajv = new Ajv({
  allErrors: true,
  verbose: true,
  ownProperties: true,
  strict: true,
  formats: { email: emailPattern },
})
