import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import type { TSchema } from 'typebox'
import { whyWrong } from '../../operations/check-arguments.ts'
import type { TypedAs } from '../../operations/in-hubctl.ts'
import type { Operation } from '../../operations/operation.ts'
import { type OperationName, operations } from '../../operations/operations.ts'
import { type Command, type CommandOption, type Input, usage } from '../command.ts'
import { durationOf } from '../time/duration.ts'
import { instantForms, instantOf, passedInstantOf } from '../time/instant.ts'

/** How an argument is typed: as a word (`flags` is `<username>` or `[filter]`) or as an option (`--role <role>`). */
interface TypedArguments {
  argument: string
  schema: TSchema
  flags: string
  summary: string
  required: boolean
}

/**
 * Says how people type the arguments of an operation. The row says it in `typed`. Otherwise a required argument is a
 * word, and an optional one is an option. `args` reads what was typed, and throws a `usage` error if it cannot.
 */
export function typedArguments(operation: OperationName) {
  const all = argumentsOf(operations[operation])
  const words = all.filter(({ flags }) => !isOption(flags))
  const options = all.filter(({ flags }) => isOption(flags))
  return {
    parameters: words.map(({ flags }) => flags),
    options: options.map(({ flags, summary, required, schema }): CommandOption => {
      return { flags, summary, required, many: isList(schema) }
    }),
    async args(input: Input): Promise<Record<string, unknown>> {
      const args: Record<string, unknown> = {}
      for (const typed of all) {
        const value = await valueFor(typed, input)
        if (value !== undefined) args[typed.argument] = value
      }
      return args
    },
  }
}

/** Makes the arguments to send to the node. Throws a `usage` error if the operation would refuse them. */
export async function readArguments(command: Command, input: Input): Promise<Record<string, unknown>> {
  const { operation } = command
  const args = await command.args(input)
  const wrong = whyWrong(operations[operation], args, (argument) => {
    const typed = argumentsOf(operations[operation]).find((one) => one.argument === argument)
    return typed ? nameOf(typed.flags) : argument
  })
  if (wrong !== undefined) throw usage(wrong)
  return args
}

/** How each argument is typed: words in the order of the schema, then options in the order of `typed`. */
export function argumentsOf({ args, hubctl, effect, singleAnswerArgs = {} }: Operation): TypedArguments[] {
  const { typed } = hubctl ?? {}
  const { properties } = args
  const required: readonly string[] = args.required ?? []
  const names = new Set([...Object.keys(typed ?? {}), ...Object.keys(properties)])
  const all = [...names].flatMap((argument): TypedArguments[] => {
    const schema = properties[argument]
    if (schema === undefined || Object.hasOwn(singleAnswerArgs, argument)) return []
    const isRequired = required.includes(argument)
    const as = typed?.[argument] ?? usualForm(argument, schema, { isRequired, isFilter: effect === 'none' })
    const [flags, summary] = typeof as === 'string' ? [as, ''] : as
    const forms = valueName(flags) === 'time' ? `: ${instantForms}` : ''
    return [{ argument, schema, flags, summary: `${summary}${forms}`, required: isRequired }]
  })
  const words = Object.keys(properties).flatMap((name) =>
    all.filter(({ argument, flags }) => argument === name && !isOption(flags)),
  )
  return [...words, ...all.filter(({ flags }) => isOption(flags))]
}

function usualForm(
  argument: string,
  schema: TSchema,
  { isRequired, isFilter }: { isRequired: boolean; isFilter: boolean },
): TypedAs {
  const word = wordOf(argument)
  const { type, description } = Object(schema)
  if (isRequired) return `<${word}>`
  if (argument === 'limit') return ['--limit <number>', 'at most so many']
  if (type === 'boolean') return [`--${word}`, isFilter ? 'only those' : description]
  return [`--${word} <${word}>`, isFilter ? `only those with ${description}` : description]
}

/** Converts typed texts, by the name of the value in the help (`<time>`). Texts with other names stay as they are. */
const readers: Record<string, (option: string, typed: string) => unknown> = {
  time: passedInstantOf,
  place: (option, typed) => (/^[0-9]{1,16}$/.test(typed) ? Number(typed) : instantOf(option, typed)),
  duration: durationOf,
  file: async (_, path) => (await contentOf(path)).toString('base64'),
}

function valueFor({ flags, schema }: TypedArguments, input: Input): unknown {
  const name = nameOf(flags)
  const { type } = Object(schema)
  if (type === 'boolean') return input.flag(name) || undefined
  if (isList(schema)) {
    const texts = input.texts(name)
    return texts.length > 0 ? texts : undefined
  }
  const typed = input.optional(name)
  if (typed === undefined) return undefined
  const read = readers[valueName(flags)]
  if (read) return read(flags.split(' ')[0] ?? '', typed)
  return type === 'integer' && /^[0-9]{1,9}$/.test(typed) ? Number(typed) : typed
}

/** The bytes of a file, or of the standard input for `-`. */
async function contentOf(path: string): Promise<Buffer> {
  if (path === '-') return buffer(process.stdin)
  return readFile(path).catch((error: Error) => {
    throw usage(`cannot read ${path}: ${error.message}`)
  })
}

function isOption(flags: string): boolean {
  return flags.startsWith('--')
}

function isList(schema: TSchema): boolean {
  return Object(schema).type === 'array'
}

/** The word that stands for a value: `role` of `--role <role>` and of `<role>`. */
function valueName(flags: string): string {
  return /[<[](.+)[>\]]/.exec(flags)?.[1] ?? ''
}

/** The name under which `Input` has a value: `revokeAfter` for `--revoke-after <duration>`. */
function nameOf(flags: string): string {
  return camelCase(isOption(flags) ? flags.slice(2).replace(/ .*/, '') : valueName(flags))
}

export function camelCase(name: string): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}

/** The word of an argument: `revoke-after` for `revokeAfter`. */
export function wordOf(argument: string): string {
  return argument.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
