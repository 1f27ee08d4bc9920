import type { Command, CommandOption, LocalCommand } from '../cli/command.ts'
import { commands } from '../cli/commands.ts'
import { localCommands, programOptions } from '../cli/typed/program.ts'
import { code, type Page, table } from './page.ts'

/** All commands of `hubctl`, in the order of its help. */
export function hubctlPage(): Page {
  return {
    name: 'hubctl',
    title: 'hubctl',
    about: 'The commands of operators, with their words and options.',
    text: [
      `[How to use it](operators.md#hubctl). Operators have the same commands [over HTTPS](https.md#commands-of-operators).`,
      '## Options of every command',
      optionTable(programOptions),
      ...[...commands, ...localCommands].map(sectionOf),
    ].join('\n\n'),
  }
}

function sectionOf({ words, parameters = [], options = [], summary, about }: Command | LocalCommand): string {
  return [
    `## hubctl ${words}`,
    code(['hubctl', words, ...parameters, ...options.filter(isRequired).map(({ flags }) => flags)].join(' ')),
    `${summary.slice(0, 1).toUpperCase()}${summary.slice(1)}.${about === undefined ? '' : ` ${about}`}`,
    ...(options.length > 0 ? [optionTable(options)] : []),
  ].join('\n\n')
}

function optionTable(options: readonly CommandOption[]): string {
  return table(['option', ''], options.map((option) => [code(option.flags), option.summary]))
}

function isRequired({ required }: CommandOption): boolean {
  return required === true
}
