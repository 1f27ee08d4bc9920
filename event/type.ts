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
 * The hub's own versions of the few TypeBox builders that the hub uses. They make the same objects as those
 * of TypeBox, and have the same types. To load TypeBox itself, which has seven hundred files, would take a
 * fifth of the start time of a node.
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

/** Gives the builders the types of TypeBox. `test/event/type.test.ts` checks that they make the same objects. */
function builders(made: Record<keyof Builders, unknown>): Builders
function builders(made: unknown): unknown {
  return made
}
