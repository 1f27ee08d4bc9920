import type { Static, TObject, TProperties, TSchema } from 'typebox'
import type { First } from '../admin/audit.ts'
import { Type } from '../event/type.ts'
import type { InConsole } from './in-console.ts'
import type { InHubctl, Path } from './in-hubctl.ts'
import type { Lines } from './lines.ts'
import type { NodeParts } from './node-parts.ts'

/** A command of operators, as all doors (admin socket, HTTPS, `hubctl`) know it. */
export type Operation<Node = NodeParts> = Described & (Reading<Node> | Changing<Node>)

interface Described {
  summary: string
  /** The schema of the arguments. Its descriptions complete the sentence "<argument> must be …". */
  args: TObject
  /** The schema of the answer. The types of `cli/` and `web/console/` follow from it. */
  result: TSchema
  /** An answer, for the description of the HTTPS API. */
  resultExample: unknown
  /** Only for a command that answers line by line. HTTPS adds these arguments to get one answer instead. */
  singleAnswerArgs?: object | undefined
  /** The command is about this node alone: it waits for no changes of other nodes, and answers without the store. */
  isAboutThisNode: boolean
  /** What is wrong with arguments that fit the schema. Undefined: nothing. */
  check?: ((args: never) => string | undefined) | undefined
  hubctl?: InHubctl | undefined
  console?: InConsole | undefined
}

interface Reading<Node> {
  effect: 'none'
  run(node: Node, args: never): Awaitable<unknown>
}

interface Changing<Node> {
  effect: 'change' | 'loss'
  run(node: Node, args: never, change: ChangeRequest): Awaitable<unknown>
}

/** A change that somebody asks for. */
export interface ChangeRequest {
  who: string
  /** Writes its entry into the audit log. If that fails, rejects with a refusal, which says that nothing was changed. */
  note: First
  /** A user of the institution asks, who is no operator (`operations/institution/own.ts`). */
  isOwner?: boolean
}

type Awaitable<T> = T | Promise<T>

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
interface OperationRow<Node, P extends TProperties, R extends TSchema, S, More extends unknown[]> {
  args?: P
  example?: object
  result: R
  check?: (args: Static<TObject<P>>) => string | undefined
  hubctl?: InHubctl<keyof P & string, Path<Static<R>>>
  console?: InConsole
  singleAnswerArgs?: S
  isAboutThisNode?: boolean
  /** Carries the command out. A command that may answer line by line returns the lines. */
  run(
    node: Node,
    args: Static<TObject<P>>,
    ...more: More
  ): Awaitable<Of<R> | (S extends object ? Lines : never)>
}

/** A command that only reads. */
export const reads = rowOf<NodeParts, 'none', []>('none')
/** A command that changes something. */
export const changes = rowOf<NodeParts, 'change', [change: ChangeRequest]>('change')
/** A command that removes something for good: programs ask for confirmation. */
export const loses = rowOf<NodeParts, 'loss', [change: ChangeRequest]>('loss')

/** Makes the function that makes rows. `Node`: what their commands ask and change. `More`: what else a row says. */
export function rowOf<Node, Effect extends Operation['effect'], Rest extends unknown[], More = unknown>(
  effect: Effect,
) {
  return <R extends TSchema, P extends TProperties = Record<never, never>, S = undefined>(
    summary: string,
    row: OperationRow<Node, P, R, S, Rest> & More,
  ) => {
    const { args = {} as P, example = {}, isAboutThisNode = false, ...others } = row
    return {
      ...others,
      effect,
      summary,
      isAboutThisNode,
      resultExample: exampleOf(row.result) as Of<R>,
      args: Type.Object(args, { additionalProperties: false, examples: [example] }),
    }
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
  if (type === 'null') return null
  return { string: '…', integer: 0, number: 0, boolean: true, object: {} }[String(type)] ?? {}
}
