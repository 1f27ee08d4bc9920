import type { ErrorObject } from 'ajv'
import { type ErrorItem, errorItem, pathOf, quote } from './error.ts'

/**
 * Whether to report a schema error. A value of the wrong type gets its `type` error alone. A value that fits none of
 * several schemas gets the `anyOf` error alone.
 */
export function isOwnError({ keyword, data, schemaPath }: ErrorObject): boolean {
  if (schemaPath.includes('/anyOf/')) return false
  return (keyword !== 'enum' && keyword !== 'const') || typeof data === 'string'
}

/**
 * Describes a schema error for the publisher. `at`: path of the checked value in the event. `isSecret`: whether the
 * description must leave out the value at a path.
 */
export function schemaError(
  error: ErrorObject,
  about: { at?: readonly (string | number)[]; isSecret?: (path: string) => boolean } = {},
): ErrorItem {
  const { at = [], isSecret = () => false } = about
  const path = pathOfError(error, at)
  return errorItem(`${error.keyword}.openapi.validation`, path, describe(error, isSecret(path)))
}

/** Path of an error. For a missing or unknown property, the path of this property (design.md §7). */
function pathOfError({ instancePath, params }: ErrorObject, at: readonly (string | number)[]): string {
  const segments = instancePath
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
  const property: unknown = params.missingProperty ?? params.additionalProperty
  return typeof property === 'string' ? pathOf(...at, ...segments, property) : pathOf(...at, ...segments)
}

function describe(error: ErrorObject, isSecret: boolean): string {
  const { keyword, params, data, parentSchema } = error
  if (keyword === 'required') {
    return `expected ${quote(params.missingProperty)} in ${parentSchema?.title ?? 'the object'}`
  }
  if (keyword === 'additionalProperties') {
    return `${quote(params.additionalProperty)} is no field of ${parentSchema?.title ?? 'the object'}`
  }
  const expected = `expected ${expectation(error)}`
  return isSecret ? expected : `got ${quote(data)}, ${expected}`
}

function expectation({ keyword, params, parentSchema }: ErrorObject): string {
  switch (keyword) {
    case 'type':
      return [params.type].flat().join(' or ')
    case 'enum':
      return `one of ${params.allowedValues.join(', ')}`
    case 'const':
      return quote(params.allowedValue)
    case 'format':
      return formatExamples[params.format] ?? params.format
    case 'pattern':
      return parentSchema?.description ?? `to match ${params.pattern}`
    case 'anyOf':
      return parentSchema?.description ?? 'another value'
    case 'minItems':
      return `at least ${params.limit} item`
    case 'maxItems':
      return `at most ${params.limit} items`
    case 'minLength':
      return `at least ${params.limit} characters`
    case 'maxLength':
      return `at most ${params.limit} characters`
    case 'minimum':
      return `a number of at least ${params.limit}`
    case 'maximum':
      return `a number of at most ${params.limit}`
    case 'exclusiveMinimum':
      return `a number greater than ${params.limit}`
    default:
      return 'another value'
  }
}

const formatExamples: Record<string, string> = {
  instant: 'an ISO 8601 instant with offset such as 2026-01-31T12:00:00+01:00',
  uri: 'a URI such as https://www.example/page',
  email: 'an e-mail address such as studio@radio.example',
}
