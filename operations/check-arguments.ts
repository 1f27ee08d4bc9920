import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { TSchema } from 'typebox'
import { emailPattern } from '../bridge-https/users/user.ts'
import { quote } from '../event/error.ts'
import { schemaOptions } from '../event/schema-options.ts'
import type { Operation } from './operation.ts'

type CheckedOperation = Pick<Operation, 'args' | 'check'>

const ajv = new Ajv({
  ...schemaOptions,
  verbose: true,
  formats: { email: emailPattern },
})

/** Compiled when first needed: most commands are never called. */
const checks = new WeakMap<TSchema, ValidateFunction>()

/**
 * Which argument of a command is wrong, and why. Undefined if all are right. `typedAs`: how the person who asks knows an
 * argument.
 */
export function whyWrong(
  { args: schema, check: checkFurther }: CheckedOperation,
  args: Record<string, unknown>,
  typedAs?: (argument: string) => string,
): string | undefined {
  const check = checks.get(schema) ?? ajv.compile(schema)
  checks.set(schema, check)
  if (check(args)) return checkFurther?.(args as never)
  const [error] = check.errors ?? []
  return error && described(error, schema, args, typedAs)
}

function described(
  { keyword, params, instancePath, parentSchema, data }: ErrorObject,
  { properties }: Operation['args'],
  args: Record<string, unknown>,
  typedAs: ((argument: string) => string) | undefined,
): string {
  if (keyword === 'additionalProperties') return `there is no argument ${quote(params.additionalProperty)}`
  const isMissing = keyword === 'required'
  const [, typed = '', item] = instancePath.split('/')
  if (item !== undefined) {
    const each = typedAs?.(typed) ?? `each of ${typed}`
    return `${each} must be ${parentSchema?.description}, not ${quote(data)}`
  }
  const name = isMissing ? String(params.missingProperty) : typed
  const expected = `${name} must be ${Object(properties[name]).description}`
  return isMissing ? expected : `${expected}, not ${quote(args[name])}`
}
