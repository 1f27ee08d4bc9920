import type { Operation } from '../admin/operations/operation.ts'
import { type OperationName, operations } from '../admin/operations/operations.ts'
import type { CallFailure } from './connection.ts'
import type { Printer } from './print.ts'

/** How a command is typed. */
interface Typed {
  /** `credentials add` */
  words: string
  /** Arguments in commander's notation: `<username>`, `[filter]`. */
  parameters?: readonly string[]
  options?: readonly CommandOption[]
}

/** One command of `hubctl`: how it is written, what it asks of the node, how the answer reads. */
export interface Command extends Typed {
  /** Where there is more to say than the table of commands does. */
  summary?: string
  /** Name of the command of the node that does it. */
  asks: OperationName
  /** What is sent. Judges everything that can be judged without the node: throws a `usage` error. */
  args?(input: Input): Awaitable<Record<string, unknown>>
  /** The answer for people. */
  print(result: unknown, printer: Printer, input?: Input): string
  /** The answer comes line by line until one side ends it: this is one of them for people. */
  line?(value: unknown, printer: Printer): string
  /** The node tells how far it is before it answers: this is a line about that for people. */
  progress?(value: unknown, printer: Printer): string
  /** What is done instead where an option, by its name in camel case, is not given. */
  without?: { option: string; does: LocalCommand }
  /** The answer for `--json`, where it is not the whole result. */
  json?(result: unknown): unknown
  /** Something about a success that needs attention. */
  warning?(result: unknown): string | undefined
  /** Whether the answer means success; otherwise the exit code is 1. */
  succeeded?(result: unknown): boolean
}

/** What such a command may need to reach a hub. */
export interface LocalHow {
  socketPath: string
  url: string | undefined
  caPath: string | undefined
  /** Who the audit log will name. */
  who: string
}

/** A command that asks no node, or not only. */
export interface LocalCommand extends Typed {
  summary: string
  does(input: Input, how: LocalHow): Promise<{ result: unknown } | { error: CallFailure }>
  /** The answer for people. */
  print(result: unknown, printer: Printer): string
}

/** An option in commander's notation; `many` may be given several times. */
export interface CommandOption {
  flags: string
  summary: string
  required?: boolean
  many?: boolean
}

/**
 * Makes options from the arguments of a list command, and arguments from what was typed. `typed`: arguments that do not
 * become options.
 */
export function filtersOf(asks: OperationName, typed: readonly string[] = []) {
  const { properties }: Operation['args'] = operations[asks].args
  const named = Object.entries(properties).filter(([name]) => !typed.includes(name))
  return {
    options: named.map(([name, schema]): CommandOption => {
      const { type, description } = Object(schema)
      if (name === 'limit') return { flags: '--limit <number>', summary: 'at most so many' }
      const flags = type === 'boolean' ? `--${name}` : `--${name} <${name}>`
      return { flags, summary: type === 'boolean' ? 'only those' : `only those with ${description}` }
    }),
    args(input: Input): Record<string, unknown> {
      const given = named.map(([name, schema]) => [name, givenFor(name, Object(schema).type, input)])
      return Object.fromEntries(given.filter(([, value]) => value !== undefined))
    },
  }
}

function givenFor(name: string, type: unknown, input: Input): unknown {
  if (type === 'boolean') return input.flag(name) || undefined
  const value = input.optional(name)
  if (type !== 'integer' || value === undefined) return value
  if (/^[0-9]{1,9}$/.test(value) && Number(value) > 0) return Number(value)
  throw usage(`--${name} must be a whole number from 1, not "${value}"`)
}

/** What was typed, by name in camel case. */
export interface Input {
  text(name: string): string
  optional(name: string): string | undefined
  texts(name: string): string[]
  flag(name: string): boolean
}

type Awaitable<T> = T | Promise<T>

/** Wrong usage: `hubctl` says so and exits with 2 (design.md §4). */
export function usage(message: string): Error {
  const error = new Error(message)
  error.name = usageName
  return error
}

/** Whether somebody typed something wrong, as opposed to something that went wrong. */
export function isUsage(error: unknown): error is Error {
  return error instanceof Error && error.name === usageName
}

const usageName = 'Usage'
