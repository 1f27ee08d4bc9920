import type TypeBox from 'typebox'

type Builders = Pick<
  typeof TypeBox,
  | 'Array'
  | 'Boolean'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
  | 'Unknown'
  | 'Unsafe'
>

const optional = Symbol('optional')

/**
 * The hub's own versions of some TypeBox builders, with the same types and results. To load TypeBox itself would slow
 * down the start: docs/decisions, "Schemas have TypeBox's types and are made here".
 */
export const Type: Builders = builders({
  Array: (items: object, options?: object) => ({ type: 'array', items, ...options }),
  Boolean: (options?: object) => ({ type: 'boolean', ...options }),
  Integer: (options?: object) => ({ type: 'integer', ...options }),
  Literal: (value: string | number | boolean, options?: object) => ({
    type: typeof value,
    const: value,
    ...options,
  }),
  Null: (options?: object) => ({ type: 'null', ...options }),
  Number: (options?: object) => ({ type: 'number', ...options }),
  Object(properties: Record<string, object>, options?: object) {
    const required = Object.keys(properties).filter((key) => !Object.hasOwn(properties[key] ?? {}, optional))
    return { type: 'object', ...(required.length > 0 && { required }), properties, ...options }
  },
  Optional: (schema: object) => Object.defineProperty({ ...schema }, optional, { value: true }),
  Record: (key: { pattern?: string }, value: object, options?: object) => ({
    type: 'object',
    patternProperties: { [key.pattern ?? '^.*$']: value },
    ...options,
  }),
  String: (options?: object) => ({ type: 'string', ...options }),
  Union: (anyOf: readonly object[], options?: object) => ({ anyOf, ...options }),
  Unknown: (options?: object) => ({ ...options }),
  Unsafe: (schema: object) => ({ ...schema }),
})

/** The compiler does not check these types: `test/event/type.test.ts` compares the builders with TypeBox. */
function builders(made: Record<keyof Builders, unknown>): Builders
function builders(made: unknown): unknown {
  return made
}
