import { readFile } from 'node:fs/promises'
import { formats } from '../../config/formats.ts'
import type { ImportReport } from '../../operations/imports.ts'
import { importOfFile } from '../backup/import.ts'
import { type CommandOf, type Input, type LocalCommand, usage } from '../command.ts'
import type { Printer } from '../print.ts'
import { typedArguments } from '../typed/arguments.ts'

/** None of them must be given: without `--aedes-redis`, a file is taken in. */
const aedesOptions = typedArguments('import.aedes-redis').options.map(({ flags, summary }) => ({
  flags,
  summary,
}))

/** `hubctl import`: of a file, or with `--aedes-redis` of what an Aedes broker keeps. */
export const importAedes: Partial<CommandOf<'import.aedes-redis'>> = {
  words: 'import',
  summary:
    'take a file of hubctl export into an empty store, or bring over what an Aedes broker keeps in Redis',
  about:
    '[Files of an export](operators.md#files-and-backup); [the steps from an Aedes broker](deployment.md#from-an-aedes-broker-on-redis).',
  parameters: ['[file]'],
  options: [...(importOfFile.options ?? []), ...aedesOptions],
  without: { option: 'aedesRedis', run: { ...importOfFile, run: fromFile } },
  args: aedesArgs,
  progress: (counts, printer) => printer.properties(counts),
  print: printAedesReport,
  warning: ({ dryRun }) => (dryRun ? 'dry run: nothing was changed' : undefined),
}

function fromFile(...[input, how]: Parameters<LocalCommand['run']>): ReturnType<LocalCommand['run']> {
  if (input.optional('users') !== undefined) throw usage('--users is for --aedes-redis')
  if (input.flag('dryRun')) throw usage('--dry-run is for --aedes-redis')
  if (input.text('file') === '') throw usage('name a file of hubctl export, or give --aedes-redis URL')
  return importOfFile.run(input, how)
}

async function aedesArgs(input: Input): Promise<Record<string, unknown>> {
  if (input.optional('file') !== undefined) throw usage('a file and --aedes-redis cannot be given together')
  if (input.flag('stopped')) throw usage('--stopped is for a file')
  const given = input.text('aedesRedis')
  const url = given === '-' ? await firstLineOfInput() : given
  // The URL may have a password, and all users can see arguments of processes.
  if (url.includes('@')) process.title = 'hubctl import'
  if (!formats['redis-url'](url)) throw usage('--aedes-redis must be a URL like redis://host:6379/0')
  const file = input.optional('users')
  return { url, dryRun: input.flag('dryRun'), ...(file !== undefined && { users: await linesOf(file) }) }
}

async function firstLineOfInput(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString().trim()
}

async function linesOf(path: string): Promise<string[]> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw usage(`cannot read ${path}: ${error.message}`)
  })
  return text.split(/\r?\n/).filter((line) => line.trim() !== '')
}

const parts = [
  ['retained', 'Retained events'],
  ['sessions', 'Sessions'],
  ['filters', 'Filters of these sessions'],
  ['queued', 'Control states that wait for them'],
] as const

const sumColumns = [
  ['WHAT', 'what'],
  ['FOUND', 'found'],
  ['CAME OVER', 'cameOver'],
  ['LEFT OUT', 'leftOut'],
] as const

const reasonColumns = [
  ['WHAT', 'what'],
  ['LEFT OUT', 'count'],
  ['REASON', 'reason'],
  ['FOR EXAMPLE', 'of'],
  ['BECAUSE', 'why'],
] as const

function printAedesReport(result: ImportReport, printer: Printer): string {
  const sums = parts.map(([name, what]) => {
    const { found, cameOver } = result[name]
    return { what, found, cameOver, leftOut: found - cameOver }
  })
  const reasons = parts.flatMap(([name, what]) =>
    result[name].leftOut.map((reason) => ({ ...reason, ...reason.examples[0], what })),
  )
  return [
    printer.list(sums, sumColumns, ''),
    printer.list(reasons, reasonColumns, 'Nothing was left out.'),
  ].join('\n\n')
}
