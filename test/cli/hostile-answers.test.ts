import t from 'tap'
import type { TSchema } from 'typebox'
import type { CommandOf } from '../../cli/command.ts'
import { commands } from '../../cli/commands.ts'
import { isKnownAnswer } from '../../cli/known-answer.ts'
import { createPrinter } from '../../cli/print.ts'
import { type OperationName, operations } from '../../operations/operations.ts'

/*
 * An answer can hold any text. Strangers choose titles and client ids, or run the hub at `--url`.
 */
const hostile = '\u001b[2J\u009b5m\u202eEVIL'
const actedUpon = /(?!\n)[\p{Cc}\p{Cf}]/u
const printer = createPrinter({})

for (const command of commands) {
  t.test(`hubctl ${command.words} prints nothing that a terminal acts upon`, async (t) => {
    const { operation, print, warning, line }: CommandOf<OperationName> = command
    const { result: schema } = operations[operation]
    for (const isShort of [true, false]) {
      const answer = hostileAnswer(schema, isShort)
      if (!isKnownAnswer(operation, answer)) throw new Error('the answer is not one of this command')
      t.notMatch(print(answer, printer), actedUpon)
      t.notMatch(printer.warning(warning?.(answer) ?? ''), actedUpon)
    }
    // `hubctl` prints an answer that it does not know like this.
    for (const answer of [hostile, [hostile], { [hostile]: { [hostile]: hostile } }, null]) {
      t.notOk(isKnownAnswer(operation, answer) && operation !== 'config', 'the answer is not known')
      t.notMatch(printer.properties(answer), actedUpon)
      if (line) t.notMatch(line(answer, printer), actedUpon)
    }
  })
}

/** An answer that fits the schema, with the hostile text wherever a text may stand. `isShort`: null where it may be. */
function hostileAnswer(schema: TSchema, isShort: boolean): unknown {
  const { enum: values, const: only, anyOf, type, items, properties, patternProperties } = Object(schema)
  if (values) return values[0]
  if (only !== undefined) return only
  if (anyOf) return hostileAnswer(anyOf[isShort ? anyOf.length - 1 : 0], isShort)
  if (properties) {
    const fields = Object.entries<TSchema>(properties)
    return Object.fromEntries(fields.map(([name, field]) => [name, hostileAnswer(field, isShort)]))
  }
  if (patternProperties)
    return { [hostile]: hostileAnswer(Object.values<TSchema>(patternProperties)[0] ?? {}, isShort) }
  if (type === 'array') return isShort ? [] : [hostileAnswer(items, isShort), hostileAnswer(items, isShort)]
  if (type === 'integer' || type === 'number') return 2
  if (type === 'boolean') return true
  return type === 'null' ? null : hostile
}
