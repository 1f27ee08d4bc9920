import type { InConsole, ShownColumn } from '../../operations/in-console.ts'
import {
  type OwnOperationName,
  type OwnResult,
  ownOperationNames,
  ownOperations,
} from '../../operations/institution/operations.ts'
import type { OwnOperation, OwnPermission } from '../../operations/institution/row.ts'
import type { Operation } from '../../operations/operation.ts'
import { type OperationName, operationNames, operations, type Result } from '../../operations/operations.ts'

/** The name of a command, of operators or of institutions. */
export type CommandName = OperationName | `institution.${OwnOperationName}`

/** The answer of a command. */
export type CommandResult<Name extends CommandName> = Name extends OperationName
  ? Result<Name>
  : Name extends `institution.${infer Own extends OwnOperationName}`
    ? OwnResult<Own>
    : never

/** What the console reads of a JSON schema. */
export interface Schema {
  type?: string
  description?: string
  enum?: readonly string[]
  pattern?: string
  minimum?: number
  maximum?: number
  maxLength?: number
  anyOf?: readonly Schema[]
  items?: Schema
  properties?: Readonly<Record<string, Schema>>
  patternProperties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
  examples?: readonly unknown[]
}

/** A command as browsers know it. */
export interface Command {
  name: CommandName
  /** The permission that a user needs. */
  permission: 'operate' | OwnPermission
  /** Method and path of a command of institutions, with arguments in braces. */
  at?: string
  summary: string
  effect: Operation['effect']
  args: Schema
  result: Schema
  /** The columns of a list, or the lines of another answer. Undefined: all fields. */
  columns?: readonly ShownColumn[] | undefined
  /** The text in place of an empty list. */
  empty: string
  console?: InConsole | undefined
}

/** All commands. `web/bundle.ts` runs this file and gives browsers the value: they get no code of the node. */
export const commands: readonly Command[] = [
  ...operationNames.map((name) => commandOf(name, 'operate', operations[name])),
  ...ownOperationNames.map((name) => {
    const operation: OwnOperation = ownOperations[name]
    return { ...commandOf(`institution.${name}`, operation.permission, operation), at: operation.at }
  }),
]

function commandOf(
  name: CommandName,
  permission: Command['permission'],
  operation: Omit<Operation, 'run'>,
): Command {
  const { summary, effect, args, result, hubctl, console, singleAnswerArgs = {} } = operation
  // Browsers get one answer, so there is nothing to choose.
  const chosen = Object.entries(args.properties).filter(
    ([argument]) => !Object.hasOwn(singleAnswerArgs, argument),
  )
  return {
    name,
    permission,
    summary,
    effect,
    args: { ...args, properties: Object.fromEntries(chosen) },
    result,
    console,
    columns: console?.columns ?? (isList(result) ? hubctl?.columns?.map(columnOf) : undefined),
    empty: console?.empty ?? hubctl?.nothing ?? 'None.',
  }
}

function isList({ type }: Schema): boolean {
  return type === 'array'
}

/** A column of `hubctl`, without its capital letters. */
function columnOf(column: string | readonly [heading: string, field: string]): ShownColumn {
  if (typeof column === 'string') return column
  const [heading, field] = column
  return [heading.charAt(0) + heading.slice(1).toLowerCase(), field]
}
