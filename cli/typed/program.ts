import { Command as Commander, Option } from 'commander'
import { exportCommand } from '../backup/export.ts'
import {
  type Command,
  type CommandOption,
  type Input,
  type LocalCommand,
  type LocalHow,
  usage,
} from '../command.ts'
import { commands } from '../commands.ts'
import { defaultSocket } from '../connection.ts'
import { logInCommands } from '../remote/log-in-commands.ts'
import { camelCase } from './arguments.ts'
import { completionOf } from './completion.ts'

/** Options of all commands. They may stand anywhere on the command line. */
export const programOptions: readonly CommandOption[] = [
  { flags: '--socket <path>', summary: 'admin socket of the node; without it, the one below HUB_DATA_DIR' },
  { flags: '--url <url>', summary: 'a hub over HTTPS, where you are logged in; or HUBCTL_URL' },
  { flags: '--ca <file>', summary: 'CA that signed the certificate of that hub, PEM' },
  { flags: '--json', summary: 'print exactly one JSON value' },
  { flags: '--watch', summary: 'ask every two seconds, until you end it' },
  { flags: '--yes', summary: 'do not ask before something is taken away for good' },
]

/** The values of the program options: which hub to ask, and how. */
export interface GlobalOptions extends Omit<LocalHow, 'who'> {
  watch: boolean
  yes: boolean
}

/** Commands that `hubctl` carries out itself, so they are not in the table `commands`. */
const withoutTable = [exportCommand, ...logInCommands]
export const localCommands: readonly LocalCommand[] = [
  ...withoutTable,
  completionOf([...commands, ...withoutTable], programOptions),
]

/** Builds the commander program from the tables of commands. */
export function createProgram(
  act: (command: Command | LocalCommand, input: Input, how: GlobalOptions) => Promise<void>,
): Commander {
  const program = new Commander('hubctl').description('Operates a running node of the now-playing hub.')
  for (const option of programOptions) program.addOption(optionOf(option))
  quiet(program)

  const groups = new Map<string, Commander>()
  for (const command of [...commands, ...localCommands]) {
    const words = command.words.split(' ')
    const name = words.pop() ?? ''
    const built = build(parentOf(words), name, command)
    built.action(() => {
      const input = inputOf(built)
      return act(chosen(command, input), input, howOf(program))
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

function chosen(command: Command | LocalCommand, input: Input): Command | LocalCommand {
  const without = 'operation' in command ? command.without : undefined
  return without && input.optional(without.option) === undefined ? without.run : command
}

function howOf(program: Commander): GlobalOptions {
  const { socket, url: given, ca, watch = false, yes = false } = program.opts<Record<string, string>>()
  if (socket !== undefined && given !== undefined) throw usage('--socket and --url cannot be given together')
  if (socket === '') throw usage('--socket must be a path')
  const url = socket === undefined ? (given ?? (process.env.HUBCTL_URL || undefined)) : undefined
  if (ca !== undefined && url === undefined) throw usage('--ca is for --url')
  return {
    socketPath: socket ?? defaultSocket(process.env),
    isSocketNamed: socket !== undefined,
    url,
    caPath: ca,
    watch: Boolean(watch),
    yes: Boolean(yes),
  }
}

function build(parent: Commander, name: string, command: Command | LocalCommand): Commander {
  const built = quiet(parent.command(name)).description(command.summary).allowExcessArguments(false)
  built.exitOverride((error) => {
    if (error.code !== 'commander.missingArgument') throw error
    throw usage(`${oneLine(error.message)} (hubctl ${command.words} --help)`)
  })
  for (const parameter of command.parameters ?? []) built.argument(parameter)
  for (const option of command.options ?? []) built.addOption(optionOf(option))
  return built
}

function optionOf({ flags, summary, required = false, many = false }: CommandOption): Option {
  const option = new Option(flags, summary).makeOptionMandatory(required)
  if (many) option.argParser((value: string, before: string[] = []) => [...before, value])
  return option
}

/** Commander's message on one line, without its prefix `error: `. */
export function oneLine(message: string): string {
  return message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ')
}

/** Makes commander throw instead of exit, and print only help: `hubctl` prints errors itself. */
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
