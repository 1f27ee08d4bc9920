import type { OperationName, Result } from '../operations/operations.ts'
import type { CallFailure } from './connection.ts'
import type { Printer } from './print.ts'

/** How a command is typed. */
interface TypedOptions {
  /** `credentials add` */
  words: string
  /** What the reference page says besides the summary. Links lead from `docs/`. */
  about?: string | undefined
  /** Arguments in commander's notation: `<username>`, `[filter]`. */
  parameters?: readonly string[]
  options?: readonly CommandOption[]
}

/** A command of `hubctl` that the node carries out. */
export type Command = { [Name in OperationName]: CommandOf<Name> }[OperationName]

/** A command that runs one of these operations. The types of its answer follow from the operation's row. */
export interface CommandOf<Name extends OperationName> extends TypedOptions {
  summary: string
  /** The operation that the node carries out. */
  operation: Name
  /** Makes the arguments to send. Throws a `usage` error if they cannot be read. */
  args(input: Input): Awaitable<Record<string, unknown>>
  /** Formats the answer for people. */
  print(result: Result<Name>, printer: Printer, input?: Input): string
  /** Formats one line for people, if the answer comes line by line. */
  line?(value: unknown, printer: Printer): string
  /** Whether a line is the last one, and all went well. Without it, lines end only with a failure. */
  isLast?(value: unknown): boolean
  /** Formats a line of progress for people, if the node reports progress. */
  progress?(value: unknown, printer: Printer): string
  /** The command to run if `option` (in camel case) is not given. */
  without?: { option: string; run: LocalCommand }
  /** Makes the answer for `--json`. Without it, `--json` prints the whole result. */
  json?(result: Result<Name>): unknown
  /** A warning to print with a successful answer. Undefined: there is none. */
  warning?(result: Result<Name>): string | undefined
  /** Whether the answer means success; otherwise the exit code is 1. */
  succeeded?(result: Result<Name>): boolean
}

/** What commands have that does not follow from the rows of their operations. */
export type ByHand = { readonly [Name in OperationName]?: Partial<CommandOf<Name>> }

/** How a local command reaches a hub. */
export interface LocalHow {
  socketPath: string
  /** Whether the person named the socket, with --socket. */
  isSocketNamed: boolean
  /** URL of the hub. Undefined: the command goes through the socket. */
  url: string | undefined
  caPath: string | undefined
  /** The name of the person for the audit log. */
  who: string
}

/** A command that `hubctl` carries out itself, with or without a node. */
export interface LocalCommand<Answer = unknown> extends TypedOptions {
  summary: string
  run(input: Input, how: LocalHow): Promise<{ result: Answer } | { error: CallFailure }>
  /** Formats the answer for people. */
  print(result: Answer, printer: Printer): string
}

/** An option in commander's notation. `many`: it may be given several times. */
export interface CommandOption {
  flags: string
  summary: string
  required?: boolean
  many?: boolean
}

/** The typed arguments, by name in camel case. */
export interface Input {
  text(name: string): string
  optional(name: string): string | undefined
  texts(name: string): string[]
  flag(name: string): boolean
}

type Awaitable<T> = T | Promise<T>

/** Makes the error for wrong usage: `hubctl` exits with 2 (design.md §4). */
export function usage(message: string): Error {
  const error = new Error(message)
  error.name = usageName
  return error
}

/** Whether an error is wrong usage, and not a failure. */
export function isUsage(error: unknown): error is Error {
  return error instanceof Error && error.name === usageName
}

const usageName = 'Usage'
