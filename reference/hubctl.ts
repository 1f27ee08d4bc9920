import type { Command, CommandOption, LocalCommand } from '../cli/command.ts'
import { commands } from '../cli/commands.ts'
import { localCommands, programOptions } from '../cli/typed/program.ts'
import { operations } from '../operations/operations.ts'
import { code, type ReferencePage, table } from './page.ts'

/** All commands of `hubctl`, in the order of its help. */
export function hubctlPage(): ReferencePage {
  return {
    name: 'hubctl',
    title: 'hubctl',
    about: 'The commands of operators, with their words and options.',
    text: [
      '[How to use it](operators.md#hubctl). Operators have the same commands [over HTTPS](https.md#commands-of-operators).',
      '## Options of every command',
      optionTable(programOptions),
      ...[...commands, ...localCommands].flatMap(sectionOf),
    ].join('\n\n'),
  }
}

function sectionOf(command: Command | LocalCommand): string[] {
  const { words, parameters = [], options = [], summary, about } = command
  const required = options.filter(({ required }) => required).map(({ flags }) => flags)
  const asks = 'operation' in command && operations[command.operation].effect === 'loss'
  return [
    `## hubctl ${words}`,
    code(['hubctl', words, ...parameters, ...required].join(' ')),
    [
      `${text(summary.slice(0, 1).toUpperCase() + summary.slice(1))}.`,
      ...(about === undefined ? [] : [about]),
      ...(asks ? ['It takes something away for good, and asks before: `--yes` answers.'] : []),
    ].join(' '),
    ...(options.length > 0 ? [optionTable(options)] : []),
  ]
}

function optionTable(options: readonly CommandOption[]): string {
  return table(
    ['option', ''],
    options.map(({ flags, summary }) => [code(flags), text(summary)]),
  )
}

/** In Markdown, `<id>` would be a tag. */
function text(plain: string): string {
  return plain.replaceAll('<', '\\<')
}
