import { type FeedPart, livestreamColumns } from '../../operations/feed.ts'
import type { Column } from '../../operations/in-hubctl.ts'
import type { ByHand } from '../command.ts'
import type { Printer } from '../print.ts'

/** The livestream feed. */
export const feed: ByHand = {
  'feed.refresh': { succeeded: ({ ok }) => ok },
  'feed.lookup': {
    print(found, printer) {
      const [only, ...others] = found
      return only && others.length === 0
        ? printer.properties(only)
        : printer.list(found, livestreamColumns, 'No livestream.')
    },
  },
  /** Whether the feed would be taken, how many livestreams would change, and the first of them. */
  'feed.diff': {
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
  },
}

interface ShownPart {
  name: 'added' | 'removed' | 'owners' | 'renamed'
  heading: string
  columns: readonly Column[]
}

const livestream = ['id', 'title', 'institution']

const parts: readonly ShownPart[] = [
  { name: 'added', heading: 'Added', columns: livestream },
  { name: 'removed', heading: 'Removed', columns: livestream },
  {
    name: 'owners',
    heading: 'Other owners',
    columns: [
      'id',
      'title',
      ['INSTITUTION BEFORE', 'before.institution'],
      ['AFTER', 'after.institution'],
      ['PUBLISHER BEFORE', 'before.publisher'],
      ['AFTER', 'after.publisher'],
    ],
  },
  { name: 'renamed', heading: 'Other external ids', columns: ['id', 'title', 'before', 'after'] },
]

function listOf({ count, items }: FeedPart, { heading, columns }: ShownPart, printer: Printer): string[] {
  if (items.length === 0) return []
  const shown = count > items.length ? `${heading}, the first ${items.length} of ${count}:` : `${heading}:`
  return [`${shown}\n${printer.list<Record<string, unknown>>(items, columns, '')}`]
}
