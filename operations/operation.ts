import type { Static, TObject, TProperties, TSchema } from 'typebox'
import { Type } from '../event/type.ts'
import type { InConsole } from './in-console.ts'

/** The effect of a command. `loss`: it removes something for good, so programs ask for confirmation. */
export type Effect = 'none' | 'change' | 'loss'

/** A command of operators, as all doors (admin socket, HTTPS, `hubctl`) know it. */
export interface Operation {
  summary: string
  effect: Effect
  /** The schema of the arguments. Its descriptions complete the sentence "<argument> must be …". */
  args: TObject
  /** The schema of the answer. The types of `cli/` and `web/console/` follow from it. */
  result: TSchema
  /** An answer, for the description of the HTTPS API. */
  resultExample: unknown
  /** Only for a command that answers line by line. HTTPS adds these arguments to get one answer instead. */
  singleAnswerArgs?: Record<string, unknown>
  console?: InConsole | undefined
}

/** The type of what a schema describes, read only. JSON leaves out a field that is undefined. */
export type Of<Schema extends TSchema> = ReadOnly<Static<Schema>>
type ReadOnly<T> = T extends object
  ? {
      readonly [Key in keyof T]:
        | ReadOnly<T[Key]>
        | (Partial<Pick<T, Key>> extends Pick<T, Key> ? undefined : never)
    }
  : T

/** What a row says besides its sentence. `example`: arguments that show how the command is asked. */
interface Row<P extends TProperties, R extends TSchema> {
  args?: P
  example?: object
  result: R
  console?: InConsole
}

/** A command that only reads. */
export function reads<R extends TSchema, P extends TProperties = Record<never, never>>(
  summary: string,
  row: Row<P, R>,
) {
  return operation('none', summary, row)
}

/** A command that changes something. */
export function changes<R extends TSchema, P extends TProperties = Record<never, never>>(
  summary: string,
  row: Row<P, R>,
) {
  return operation('change', summary, row)
}

/** A command that removes something for good. */
export function loses<R extends TSchema, P extends TProperties = Record<never, never>>(
  summary: string,
  row: Row<P, R>,
) {
  return operation('loss', summary, row)
}

function operation<P extends TProperties, R extends TSchema>(
  effect: Effect,
  summary: string,
  { args = {} as P, example = {}, result, console }: Row<P, R>,
) {
  return {
    ...{ summary, effect, result, console },
    resultExample: exampleOf(result) as Of<R>,
    args: Type.Object(args, { additionalProperties: false, examples: [example] }),
  }
}

/** An answer that fits the schema. */
function exampleOf(schema: TSchema): unknown {
  const { examples, enum: values, const: only, anyOf, type, items, properties } = Object(schema)
  if (examples) return examples[0]
  if (values) return values[0]
  if (only !== undefined) return only
  if (anyOf) return exampleOf(anyOf[0])
  if (properties) {
    const fields = Object.entries<TSchema>(properties)
    return Object.fromEntries(fields.map(([name, field]) => [name, exampleOf(field)]))
  }
  if (type === 'array') return [exampleOf(items)]
  return { string: '…', integer: 0, number: 0, boolean: true, null: null, object: {} }[String(type)] ?? {}
}
