import { Ajv, type ValidateFunction } from 'ajv'
import { operations } from '../operations/operations.ts'

const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: false, validateSchema: false })
const checks = new Map<string, ValidateFunction>()

/** How the answer of a command differs from what its row in `operations/` says. Undefined: it does not. */
export function whyUnlike(command: string, result: unknown): string | undefined {
  const schema = Object(operations)[command]?.result
  if (schema === undefined) return undefined
  const check = checks.get(command) ?? ajv.compile(closed(schema))
  checks.set(command, check)
  return check(result) ? undefined : ajv.errorsText(check.errors)
}

/** The same schema, in which no object may have a field that the schema does not name. */
function closed(schema: unknown): object {
  return JSON.parse(JSON.stringify(schema), (_key, part) =>
    part?.type === 'object' && part.properties ? { additionalProperties: false, ...part } : part,
  )
}
