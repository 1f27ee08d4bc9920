import type { InConsole } from '../../operations/in-console.ts'
import type { Operation } from '../../operations/operation.ts'
import { type OperationName, operationNames, operations } from '../../operations/operations.ts'

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
  name: OperationName
  summary: string
  effect: Operation['effect']
  args: Schema
  result: Schema
  console?: InConsole | undefined
}

/** All commands. `web/bundle.ts` runs this file and gives browsers the value: they get no code of the node. */
export const commands: readonly Command[] = operationNames.map((name) => {
  const { summary, effect, args, result, console, singleAnswerArgs = {} }: Operation = operations[name]
  // Browsers get one answer, so there is nothing to choose.
  const chosen = Object.entries(args.properties).filter(
    ([argument]) => !Object.hasOwn(singleAnswerArgs, argument),
  )
  return { name, summary, effect, args: { ...args, properties: Object.fromEntries(chosen) }, result, console }
})
