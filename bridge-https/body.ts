import { Ajv, type ValidateFunction } from 'ajv'
import type { TSchema } from 'typebox'
import { type ErrorItem, ErrorList, errorItem, pathOf } from '../event/error.ts'
import { parseInstant } from '../event/format.ts'
import { parseJson } from '../event/json.ts'
import { isOwnError, schemaError } from '../event/schema-error.ts'
import { schemaOptions } from '../event/schema-options.ts'
import { belowBody } from './answer.ts'
import { emailPattern } from './users/user.ts'

/**
 * The schemas of a route's bodies. A body is checked by the first schema that has at least one field of the body. If no
 * schema has one, the first schema in the list checks it.
 */
export type BodySchemas = readonly TSchema[]

/** Returns a function that checks bodies. The API description shows the same schemas. */
export function compileBody(
  schemas: BodySchemas,
): (payload: Buffer) => { value: unknown } | { errors: ErrorItem[] } {
  const variants = schemas.map((schema) => ({ names: namesOf(schema), validate: whenAsked(schema) }))

  return (payload) => {
    const parsed = parseJson(payload)
    if ('errors' in parsed) return { errors: belowBody(parsed.errors) }
    const { value } = parsed
    const [first] = variants
    const meant =
      variants.find(({ names }) => names.some((name) => Object.hasOwn(Object(value), name))) ?? first
    const validate = meant?.validate()
    if (validate && !validate(value)) return { errors: belowBody(errorsOf(validate)) }
    const misspelled = misspelledIn(Object.keys(Object(value)), meant?.names ?? [])
    return misspelled.length > 0 ? { errors: belowBody(misspelled) } : { value }
  }
}

/** Returns a function that checks the parameters of a request: their errors, with paths such as `.limit`. */
export function compileParameters(schema: TSchema): (given: unknown) => ErrorItem[] {
  const check = whenAsked(schema)
  return (given) => {
    const validate = check()
    return validate(given) ? [] : errorsOf(validate)
  }
}

/**
 * Errors for names that are nearly those of fields, such as `maxage` or `livestream`. Their sender would not notice that
 * they are ignored. All other unknown fields are ignored, as the API did before MQTT.
 */
function misspelledIn(given: readonly string[], names: readonly string[]): ErrorItem[] {
  const meant = new Map(names.map((name) => [simplified(name), name]))
  const errors = new ErrorList()
  for (const name of given) {
    const expected = names.includes(name) ? undefined : meant.get(simplified(name))
    if (expected === undefined) continue
    errors.add(() =>
      errorItem('additionalProperties.openapi.validation', pathOf(name), `expected ${expected}`),
    )
  }
  return errors.items()
}

/** Warns of each field of a body that its schema does not have: nobody reads it. */
export function unreadIn(body: object, schema: TSchema): ErrorItem[] {
  const names = namesOf(schema)
  const warnings = new ErrorList('warnings')
  for (const name of Object.keys(body).filter((each) => !names.includes(each)))
    warnings.add(() => errorItem('additionalProperties.openapi.validation', pathOf('body', name)))
  return warnings.items()
}

/** A name without case, dashes, underscores, and the `s` of a plural. */
function simplified(name: string): string {
  return name.toLowerCase().replace(/[-_]|s$/g, '')
}

function errorsOf(validate: ValidateFunction): ErrorItem[] {
  const errors = new ErrorList()
  for (const error of (validate.errors ?? []).filter(isOwnError))
    errors.add(() => schemaError(error, { isSecret }))
  return errors.items()
}

/** The check for a schema, compiled when first needed: many routes are never called. */
function whenAsked(schema: TSchema): () => ValidateFunction {
  let made: ValidateFunction | undefined
  return () => {
    made ??= ajv.compile(schema)
    return made
  }
}

/** Whether the value at a path is secret. Answers may get into logs and must repeat no secrets. */
function isSecret(path: string): boolean {
  return /password|token/i.test(path)
}

function namesOf(schema: TSchema): string[] {
  return 'properties' in schema ? Object.keys(Object(schema.properties)) : []
}

const ajv = new Ajv({
  ...schemaOptions,
  allErrors: true,
  verbose: true,
  formats: { email: emailPattern, instant: (text: string) => parseInstant(text) !== undefined },
})
