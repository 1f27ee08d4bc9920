#!/usr/bin/env node
import { userInfo } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { CommanderError } from 'commander'
import { version } from '../config/version.ts'
import { type OperationName, operations } from '../operations/operations.ts'
import { reasonOf } from '../telemetry/reason.ts'
import { visibleJson } from '../telemetry/visible.ts'
import { type Command, type CommandOf, type Input, isUsage, type LocalCommand, usage } from './command.ts'
import { type CallFailure, type CallResult, call, readLines } from './connection.ts'
import { isKnownAnswer } from './known-answer.ts'
import { createPrinter, toJson } from './print.ts'
import { openRemote } from './remote/hub.ts'
import { checkUrl, readCa } from './remote/log-in.ts'
import { readArguments, wordOf } from './typed/arguments.ts'
import { askPerson, isPersonThere } from './typed/person.ts'
import { createProgram, type GlobalOptions, oneLine } from './typed/program.ts'

/** Pause between two answers of `--watch`, milliseconds. */
const watchPauseMs = 2_000

/** Runs one command of the operator and returns the exit code (design.md §4). */
async function main(argv: readonly string[]): Promise<number> {
  // A usage error of commander must be JSON as well.
  const json = wantsJson(argv)
  let code = 0
  const program = createProgram(async (command, input, how) => {
    code = 'run' in command ? await runHere(command, input, how) : await run(command, input, how)
  }).version(json ? toJson({ version }) : version, '--version', 'print the release')
  try {
    await program.parseAsync(argv, { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0 // help or the release was asked for
    if (error instanceof CommanderError || isUsage(error)) {
      fail({ code: 'usage', message: describe(error) }, json)
      return 2
    }
    // For example, the log-in file cannot be read: the message names the path.
    fail({ code: 'internal', message: reasonOf(error) }, json)
    return 1
  }

  async function run(command: Command, input: Input, how: GlobalOptions): Promise<number> {
    const args = await readArguments(command, input)
    const { effect } = operations[command.operation]
    if (how.watch && (command.line !== undefined || effect !== 'none')) throw notWatched(command)
    const door = await openDoor(how)
    if (effect === 'loss' && !(await mayTakeAway(command, args, how))) {
      fail({ code: 'declined', message: 'nothing was done' }, json)
      return 1
    }
    const { line } = command
    if (line) {
      const printer = createPrinter(process.stdout)
      // A command that prints lines would otherwise outlive its reader (`| head`).
      process.stdout.once('error', () => process.exit(0))
      let isOver = false
      const print = (value: unknown) => {
        console.log(json ? toLine(value) : line(value, printer))
        isOver = command.isLast?.(value) ?? false
      }
      const error = await door.readLines(command.operation, { args, print })
      if (isOver) return 0
      if (json) console.log(toLine({ error }))
      else fail(error, false)
      return 1
    }
    if (command.progress) return show(command, input, await callAndTell(command, door, args, json), json)
    if (!how.watch) return show(command, input, await door.call(command.operation, args), json)
    process.stdout.once('error', () => process.exit(0))
    let hasAnswered = false
    for (;;) {
      const answer = await door.call(command.operation, args)
      if (process.stdout.isTTY && !json) process.stdout.write(clearScreen)
      const code = json ? showLine(command, answer) : show(command, input, answer, false)
      hasAnswered ||= !('error' in answer)
      if ('error' in answer && !mayPass(answer.error, hasAnswered)) return code
      await delay(watchPauseMs)
    }
  }

  async function runHere(command: LocalCommand, input: Input, how: GlobalOptions): Promise<number> {
    if (how.watch) throw notWatched(command)
    const answer = await command.run(input, { ...how, who: whoAsks() })
    if ('error' in answer) {
      fail(answer.error, json)
      return 1
    }
    const { result } = answer
    console.log(json ? toJson(result) : command.print(result, createPrinter(process.stdout)))
    return 0
  }
}

function notWatched({ words }: Command | LocalCommand): Error {
  return usage(`--watch is for what only reads, not for hubctl ${words}`)
}

function describe(error: Error): string {
  if (!(error instanceof CommanderError)) return error.message
  if (error.code === 'commander.help') return 'that is not a whole command: add --help to see what comes next'
  return oneLine(error.message)
}

async function openDoor({ socketPath, url, caPath }: GlobalOptions) {
  if (url !== undefined) {
    const ca = caPath === undefined ? undefined : await readCa(caPath)
    return { isRemote: true, ...openRemote(checkUrl(url), ca) }
  }
  if (Buffer.byteLength(socketPath) > maxSocketPathBytes) {
    throw usage(`the path of the socket is longer than ${maxSocketPathBytes} bytes: ${socketPath}`)
  }
  const who = whoAsks()
  return {
    isRemote: false,
    call: (command: string, args: Record<string, unknown>) => call(socketPath, command, args, who),
    readLines: (command: string, how: { args: Record<string, unknown>; print: (value: unknown) => void }) =>
      readLines(socketPath, command, { ...how, who }),
  }
}

/** Sends a command, and shows the progress at a terminal (not over HTTPS). */
async function callAndTell(
  { operation, progress }: Command,
  door: Awaited<ReturnType<typeof openDoor>>,
  args: Record<string, unknown>,
  json: boolean,
): Promise<CallResult> {
  if (door.isRemote) return door.call(operation, args)
  const printer = createPrinter(process.stderr)
  let answer: CallResult | undefined
  const print = (line: unknown) => {
    const { result, error, progress: far } = Object(line)
    if (error !== undefined) answer = { error }
    else if (far === undefined) answer = { result }
    else if (!json && process.stderr.isTTY) console.error(progress?.(far, printer))
  }
  const closed = await door.readLines(operation, { args, print })
  return answer ?? { error: closed }
}

/**
 * Whether a command that cannot be undone is allowed. Asks the person at the terminal. Over HTTPS, a script needs
 * `--yes`.
 */
async function mayTakeAway(
  command: Command,
  args: Record<string, unknown>,
  how: GlobalOptions,
): Promise<boolean> {
  if (how.yes) return true
  const { words } = command
  if (isPersonThere()) {
    const typed = [words, ...Object.entries(args).flatMap(([name, value]) => asTyped(name, value))]
    const where = how.url === undefined ? '' : ` at ${how.url}`
    const flags = command.options?.filter((option) => typed.includes(option.flags)) ?? []
    const effects = [command.summary, ...flags.map(({ summary }) => summary)].join('; ')
    const printer = createPrinter(process.stderr)
    const question = printer.question([`${typed.join(' ')}${where}: ${effects}.`, confirmation])
    const [answer = ''] = await askPerson([{ text: question }])
    return /^y(es)?$/i.test(answer.trim())
  }
  if (how.url === undefined) return true
  throw usage(`hubctl ${words} cannot be undone, and nobody can be asked: add --yes`)
}

const confirmation = 'This cannot be undone. Go on? (y/N) '

function asTyped(name: string, value: unknown): string[] {
  if (typeof value !== 'boolean') return [String(value)]
  return value ? [`--${wordOf(name)}`] : []
}

/** Prints an answer, and returns the exit code. */
function show(command: CommandOf<OperationName>, input: Input, answer: CallResult, json: boolean): number {
  if ('error' in answer) {
    fail(withAdvice(answer.error, command), json)
    return 1
  }
  const { result } = answer
  const printer = createPrinter(process.stdout)
  if (!isKnownAnswer(command.operation, result)) {
    console.log(json ? toJson(result) : printer.properties(result))
    console.error(createPrinter(process.stderr).warning(strangeAnswer))
    return command.succeeded ? 1 : 0
  }
  console.log(json ? toJson(command.json?.(result) ?? result) : command.print(result, printer, input))
  const warning = command.warning?.(result)
  if (warning !== undefined) console.error(createPrinter(process.stderr).warning(warning))
  return command.succeeded?.(result) === false ? 1 : 0
}

function withAdvice(error: CallFailure, { operation }: Pick<Command, 'operation'>): CallFailure {
  if (error.code !== 'node.unanswered' || operations[operation].effect === 'none') return error
  return { ...error, message: `${error.message}. hubctl audit shows whether the change was made` }
}

/** Prints an answer on one line, also a failure, and returns the exit code. */
function showLine(command: CommandOf<OperationName>, answer: CallResult): number {
  if ('error' in answer) console.log(toLine(answer))
  else {
    const { result } = answer
    const isKnown = isKnownAnswer(command.operation, result)
    console.log(toLine((isKnown ? command.json?.(result) : undefined) ?? result))
  }
  return 'error' in answer ? 1 : 0
}

/**
 * Whether `--watch` continues after a failure. A node that is unreachable, silent or busy may be restarting, so
 * `--watch` continues. All other failures end `--watch` before its first result. After the first result, only failures
 * of log-in or permission end `--watch`.
 */
function mayPass({ code }: CallFailure, hasAnswered: boolean): boolean {
  if (['node.unreachable', 'node.unanswered', 'busy'].includes(code)) return true
  return hasAnswered && !code.startsWith('login.') && code !== 'permission'
}

const strangeAnswer =
  'the answer is not one that this hubctl knows: the hub is of another release. All of it is shown'

function toLine(value: unknown): string {
  return visibleJson(JSON.stringify(value ?? null))
}

/** Longest path of a unix socket, bytes (unix(7)). A longer path would be cut short silently. */
const maxSocketPathBytes = 107
/** Moves the cursor to the top left, and clears the screen (ECMA-48). */
const clearScreen = '\u001b[H\u001b[2J'

/** Prints an error. With `--json`, it is the only value on stdout. For people, it goes to stderr. */
function fail(error: CallFailure, json: boolean): void {
  if (json) console.log(toJson({ error }))
  else console.error(createPrinter(process.stderr).failure(error.message))
}

function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return argv.slice(0, end < 0 ? argv.length : end).includes('--json')
}

/** The user for the audit log. In a container, the user id may have no name. */
function whoAsks(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

// `hubctl … | head` closes the pipe early: that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return
  console.error(`hubctl: the output cannot be written: ${error.message}`)
  process.exit(1)
})
process.exitCode = await main(process.argv.slice(2))
