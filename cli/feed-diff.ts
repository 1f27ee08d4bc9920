import type { Command } from './command.ts'
import { type Column, type Printer, valueAt } from './print.ts'

/** `hubctl feed diff`: whether the feed would be taken, how many livestreams would change, and the first of them. */
export const feedDiffCommand: Command = {
  words: 'feed diff',
  operation: 'feed.diff',
  print(result, printer) {
    const reason = valueAt(result, 'reason')
    const summary = {
      source: valueAt(result, 'source'),
      items: valueAt(result, 'items'),
      itemsBefore: valueAt(result, 'itemsBefore'),
      ...Object.fromEntries(parts.map(({ name }) => [name, valueAt(result, `differences.${name}.count`)])),
      retitled: valueAt(result, 'differences.retitled.count'),
      taken: reason === null ? 'yes' : 'no',
      ...(reason !== null && { reason, problem: valueAt(result, 'problem') }),
    }
    const lists = parts.flatMap((part) => listOf(result, part, printer))
    return [printer.properties(summary), ...lists].join('\n\n')
  },
}

interface Part {
  name: string
  heading: string
  columns: readonly Column[]
}

const livestream = [
  ['ID', 'id'],
  ['TITLE', 'title'],
  ['INSTITUTION', 'institution'],
] as const satisfies Column[]

const parts: readonly Part[] = [
  { name: 'added', heading: 'Added', columns: livestream },
  { name: 'removed', heading: 'Removed', columns: livestream },
  {
    name: 'owners',
    heading: 'Other owners',
    columns: [
      ...livestream.slice(0, 2),
      ['INSTITUTION BEFORE', 'before.institution'],
      ['AFTER', 'after.institution'],
      ['PUBLISHER BEFORE', 'before.publisher'],
      ['AFTER', 'after.publisher'],
    ],
  },
  {
    name: 'renamed',
    heading: 'Other external ids',
    columns: [...livestream.slice(0, 2), ['BEFORE', 'before'], ['AFTER', 'after']],
  },
]

function listOf(result: unknown, { name, heading, columns }: Part, printer: Printer): string[] {
  const items = valueAt(result, `differences.${name}.items`)
  if (!Array.isArray(items) || items.length === 0) return []
  const count = Number(valueAt(result, `differences.${name}.count`))
  const shown = count > items.length ? `${heading}, the first ${items.length} of ${count}:` : `${heading}:`
  return [`${shown}\n${printer.list(items, columns, '')}`]
}
