import type { FeedPart } from '../operations/feed.ts'
import type { CommandOf } from './command.ts'
import type { Column, Printer } from './print.ts'

/** `hubctl feed diff`: whether the feed would be taken, how many livestreams would change, and the first of them. */
export const feedDiffCommand: CommandOf<'feed.diff'> = {
  words: 'feed diff',
  operation: 'feed.diff',
  print({ source, items, itemsBefore, reason, problem, differences }, printer) {
    const summary = {
      source,
      items,
      itemsBefore,
      ...Object.fromEntries(parts.map(({ name }) => [name, differences?.[name].count])),
      retitled: differences?.retitled.count,
      taken: reason === null ? 'yes' : 'no',
      ...(reason !== null && { reason, problem }),
    }
    const lists = differences ? parts.flatMap((part) => listOf(differences[part.name], part, printer)) : []
    return [printer.properties(summary), ...lists].join('\n\n')
  },
}

interface Part {
  name: 'added' | 'removed' | 'owners' | 'renamed'
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

function listOf({ count, items }: FeedPart, { heading, columns }: Part, printer: Printer): string[] {
  if (items.length === 0) return []
  const shown = count > items.length ? `${heading}, the first ${items.length} of ${count}:` : `${heading}:`
  return [`${shown}\n${printer.list(items, columns, '')}`]
}
