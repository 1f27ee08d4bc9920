import type { Operation } from '../operations/operation.ts'
import { type OperationName, operationNames, operations } from '../operations/operations.ts'
import { byHand } from './by-hand/by-hand.ts'
import type { Command, CommandOf } from './command.ts'
import type { Printer } from './print.ts'
import { typedArguments } from './typed/arguments.ts'

/**
 * All commands that a node carries out, in the order of the help (design.md §4). The row of an operation says what is
 * typed and printed. An entry of `byHand` replaces parts of that.
 */
export const commands: readonly Command[] = operationNames.map((name) => commandOf(name) as Command)

function commandOf<Name extends OperationName>(operation: Name): CommandOf<Name> {
  const row: Operation = operations[operation]
  return {
    words: operation.replace('.', ' '),
    summary: row.summary,
    about: row.hubctl?.about,
    operation,
    ...typedArguments(operation),
    print: (result, printer) => printed(operation, result, printer),
    json: withoutWarning,
    warning: warningOf,
    ...byHand[operation],
  }
}

/** An answer for people: the sentence or the table of the row, or else the names and values of all fields. */
function printed(operation: OperationName, result: object, printer: Printer): string {
  const { hubctl = {}, result: schema }: Operation = operations[operation]
  const { done, note, columns, nothing } = hubctl
  if (done !== undefined) return printer.sentence(done, result)
  if (Array.isArray(result) || columns) {
    const rows: readonly Record<string, unknown>[] = Array.isArray(result) ? result : [{ ...result }]
    return printer.list(rows, columns ?? fieldsOf(schema), nothing ?? `No ${subjectOf(operation)}.`)
  }
  const properties = printer.properties(withoutWarning(result))
  return note === undefined ? properties : `${properties}\n\n${note}`
}

/** The fields of a list's elements that fit into a table. */
function fieldsOf(schema: object): string[] {
  const { properties = {} } = Object(schema).items ?? {}
  return Object.keys(properties).filter((name) => properties[name].type !== 'object')
}

/** What a list is of: `dead letters` for `queues.dead-letters`, `queues` for `queues.list`. */
function subjectOf(operation: OperationName): string {
  const [group = '', last] = operation.split('.')
  return last === undefined || last === 'list' ? group : last.replaceAll('-', ' ')
}

/** The field `warning` of an answer goes to the standard error, also with `--json`. */
function warningOf(result: object): string | undefined {
  return 'warning' in result ? String(result.warning) : undefined
}

function withoutWarning(result: object): object {
  if (!('warning' in result)) return result
  const { warning: _printedApart, ...rest } = result
  return rest
}
