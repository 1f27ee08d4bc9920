#!/usr/bin/env node
import { userInfo } from 'node:os'
import { Command as Commander, CommanderError, Option } from 'commander'
import { version } from '../config/version.ts'
import { visibleJson } from '../telemetry/visible.ts'
import { type Command, type Input, isUsage, usage } from './command.ts'
import { commands } from './commands.ts'
import { type CallFailure, call, defaultSocket, readLines } from './connection.ts'
import { createPrinter, toJson } from './print.ts'

/** Runs one command of the operator and returns the exit code (design.md §4). */
async function main(argv: readonly string[]): Promise<number> {
  // Known before anything is parsed: also a usage error is then one JSON value.
  const json = wantsJson(argv)
  let code = 0
  const program = createProgram(async (command, input, socketPath) => {
    code = await run(command, input, { socketPath, json })
  }).version(json ? toJson({ version }) : version, '--version', 'print the release')
  try {
    await program.parseAsync(argv, { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0 // help or the release was asked for
    if (!(error instanceof CommanderError) && !isUsage(error)) throw error
    fail({ code: 'usage', message: describe(error) }, json)
    return 2
  }
}

/** Commander's words on one line; where only part of a command was given, what may come next. */
function describe(error: Error): string {
  if (!(error instanceof CommanderError)) return error.message
  if (error.code === 'commander.help') return 'that is not a whole command: add --help to see what comes next'
  return error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ')
}

async function run(
  command: Command,
  input: Input,
  how: { socketPath: string; json: boolean },
): Promise<number> {
  const args = (await command.args?.(input)) ?? {}
  if (Buffer.byteLength(how.socketPath) > maxSocketPathBytes) {
    throw usage(`the path of the socket is longer than ${maxSocketPathBytes} bytes: ${how.socketPath}`)
  }
  const { line } = command
  if (line) {
    const printer = createPrinter(process.stdout)
    // Nobody reads any more: it would go on for ever.
    process.stdout.once('error', () => process.exit(0))
    const toLine = (value: unknown) => visibleJson(JSON.stringify(value))
    const print = (value: unknown) => console.log(how.json ? toLine(value) : line(value, printer))
    const error = await readLines(how.socketPath, command.asks, { args, who: whoAsks(), print })
    if (how.json) print({ error })
    else fail(error, false)
    return 1
  }
  const answer = await call(how.socketPath, command.asks, args, whoAsks())
  if ('error' in answer) {
    fail(answer.error, how.json)
    return 1
  }
  const { result } = answer
  console.log(
    how.json
      ? toJson(command.json?.(result) ?? result)
      : command.print(result, createPrinter(process.stdout)),
  )
  const warning = command.warning?.(result)
  if (warning !== undefined) console.error(createPrinter(process.stderr).warning(warning))
  return command.succeeded?.(result) === false ? 1 : 0
}

/** `sun_path` of unix(7) without its closing null; a longer one would be cut short in silence. */
const maxSocketPathBytes = 107

/** The table of commands as commander wants it. `--socket` and `--json` belong to the program: they stand anywhere. */
function createProgram(
  action: (command: Command, input: Input, socketPath: string) => Promise<void>,
): Commander {
  const program = new Commander('hubctl')
    .description('Operates a running node of the now-playing hub.')
    .option('--socket <path>', 'admin socket of the node', defaultSocket(process.env))
    .option('--json', 'print exactly one JSON value')
  quiet(program)

  const groups = new Map<string, Commander>()
  for (const command of commands) {
    const words = command.words.split(' ')
    const name = words.pop() ?? ''
    const built = build(parentOf(words), name, command)
    built.action(async () => {
      const { socket } = program.opts<{ socket: string }>()
      if (socket === '') throw usage('--socket must be a path')
      await action(command, inputOf(built), socket)
    })
  }
  return program

  function parentOf(words: readonly string[]): Commander {
    const [word] = words
    if (word === undefined) return program
    const group = groups.get(word) ?? quiet(program.command(word)).description(summaryOf(word))
    groups.set(word, group)
    return group
  }
}

function build(parent: Commander, name: string, command: Command): Commander {
  const built = quiet(parent.command(name)).description(command.summary).allowExcessArguments(false)
  built.exitOverride((error) => {
    if (error.code !== 'commander.missingArgument') throw error
    throw usage(`${describe(error)} (hubctl ${command.words} --help)`)
  })
  for (const parameter of command.parameters ?? []) built.argument(parameter)
  for (const { flags, summary, required = false, many = false } of command.options ?? []) {
    const option = new Option(flags, summary).makeOptionMandatory(required)
    if (many) option.argParser((value: string, before: string[] = []) => [...before, value])
    built.addOption(option)
  }
  return built
}

/** Commander throws instead of exiting and prints only help: errors are ours to print. */
function quiet(command: Commander): Commander {
  return command.exitOverride().configureOutput({ writeErr: () => undefined, outputError: () => undefined })
}

function summaryOf(group: string): string {
  const names = commands
    .filter(({ words }) => words.startsWith(`${group} `))
    .map(({ words }) => words.slice(group.length + 1))
  return names.join(', ')
}

function inputOf(built: Commander): Input {
  const given = new Map<string, unknown>(Object.entries(built.opts()))
  for (const [index, parameter] of built.registeredArguments.entries()) {
    given.set(camelCase(parameter.name()), built.processedArgs[index])
  }
  const optional = (name: string) => {
    const value = given.get(name)
    return typeof value === 'string' ? value : undefined
  }
  return {
    optional,
    text: (name) => optional(name) ?? '',
    texts: (name) => {
      const value = given.get(name)
      return Array.isArray(value) ? value.map(String) : []
    },
    flag: (name) => given.get(name) === true,
  }
}

function camelCase(name: string): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}

/** Refusals and usage errors: for programs on stdout, as the one JSON value; for people on stderr. */
function fail(error: CallFailure, json: boolean): void {
  if (json) console.log(toJson({ error }))
  else console.error(createPrinter(process.stderr).failure(error.message))
}

function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return argv.slice(0, end < 0 ? argv.length : end).includes('--json')
}

/** Who the audit log will name. Containers run under ids without a name. */
function whoAsks(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

// `hubctl … | head` closes the pipe early: that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})
process.exitCode = await main(process.argv.slice(2))
