import type { TSchema } from 'typebox'

/** What a test gives of an answer, and the rest as its schema has it: null where it may be, else zero or nothing. */
export function completed(schema: TSchema, given: unknown): unknown {
  const { enum: values, const: only, anyOf, type, items, properties, required = [] } = Object(schema)
  if (anyOf) {
    const nothing = anyOf.find((one: TSchema) => Object(one).type === 'null')
    return given === null || (given === undefined && nothing) ? null : completed(anyOf[0], given)
  }
  if (properties && (given === undefined || isObject(given))) {
    const fields = Object.entries<TSchema>(properties).filter(
      ([name]) => required.includes(name) || Object.hasOwn(given ?? {}, name),
    )
    const known = fields.map(([name, field]) => [name, completed(field, given?.[name])])
    const further = Object.entries(given ?? {}).filter(([name]) => !Object.hasOwn(properties, name))
    return Object.fromEntries([...known, ...further])
  }
  if (type === 'array' && Array.isArray(given)) return given.map((item) => completed(items, item))
  if (given !== undefined) return given
  if (values) return values[0]
  if (only !== undefined) return only
  if (type === 'null') return null
  return { array: [], object: {}, boolean: false, string: '' }[String(type)] ?? 0
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
