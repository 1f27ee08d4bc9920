import { Ajv, type ValidateFunction } from 'ajv'
import type { TSchema } from 'typebox'
import type { Of } from '../operations/operation.ts'
import { type OperationName, operations, type Result } from '../operations/operations.ts'

const ajv = new Ajv({
  strict: false,
  validateFormats: false,
  validateSchema: false,
  meta: false,
  // Each check runs once.
  code: { optimize: false },
})
const checks = new Map<TSchema, ValidateFunction>()

/**
 * Whether an answer is what the row of the command says, or more. A hub of another release may answer otherwise, and a
 * stranger's hub behind `--url` may answer anything.
 */
export function isKnownAnswer<Name extends OperationName>(
  name: Name,
  answer: unknown,
): answer is Result<Name> {
  return fits(operations[name].result, answer)
}

/** Whether a value fits a schema. */
export function fits<Schema extends TSchema>(schema: Schema, value: unknown): value is Of<Schema> {
  const check = checks.get(schema) ?? ajv.compile<Of<Schema>>(schema)
  checks.set(schema, check)
  return check(value)
}
