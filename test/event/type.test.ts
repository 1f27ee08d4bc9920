import t from 'tap'
import TypeBox from 'typebox'
import { Type } from '../../event/type.ts'

// Each function is called with our `Type` and with TypeBox.
type Builders = typeof Type

const schemas: Record<string, (Type: Builders) => object> = {
  array: (Type) => Type.Array(Type.String(), { minItems: 1, description: 'a list' }),
  boolean: (Type) => Type.Boolean({ description: 'true or false' }),
  integer: (Type) => Type.Integer({ minimum: 1 }),
  'literal text': (Type) => Type.Literal('PUSH', { description: 'PUSH' }),
  'literal number': (Type) => Type.Literal(1),
  'literal truth': (Type) => Type.Literal(true),
  null: (Type) => Type.Null({ deprecated: true }),
  number: (Type) => Type.Number({ exclusiveMinimum: 0 }),
  'empty object': (Type) => Type.Object({}),
  object: (Type) =>
    Type.Object(
      { a: Type.String(), b: Type.Optional(Type.Null()) },
      { additionalProperties: false, $id: 'A' },
    ),
  'object of optional fields': (Type) => Type.Object({ a: Type.Optional(Type.Unsafe({ $ref: 'A' })) }),
  'field that is optional elsewhere': (Type) => {
    const field = Type.String()
    return Type.Object({ outer: Type.Object({ a: Type.Optional(field) }), a: field })
  },
  'optional twice': (Type) => Type.Object({ a: Type.Optional(Type.Optional(Type.String())) }),
  record: (Type) => Type.Record(Type.String(), Type.Unknown(), { description: 'an event' }),
  'record with a pattern': (Type) => Type.Record(Type.String({ pattern: '^a' }), Type.Number()),
  string: (Type) => Type.String({ format: 'uri' }),
  union: (Type) => Type.Union([Type.Literal('a'), Type.Null()], { description: 'a or nothing' }),
  unknown: (Type) => Type.Unknown({ description: 'anything' }),
  unsafe: (Type) => Type.Unsafe({ type: ['string', 'null'] }),
}

t.test('a schema reads as the one that TypeBox makes, to the order of its keys', async (t) => {
  for (const [name, make] of Object.entries(schemas)) {
    t.equal(JSON.stringify(make(Type)), JSON.stringify(make(TypeBox)), name)
  }
})

t.test('what a schema is made of stays as it was', async (t) => {
  const field = Type.String()
  Type.Optional(field)
  t.strictSame(Type.Object({ field }).required, ['field'])
})
