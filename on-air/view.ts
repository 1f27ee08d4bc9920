import { mayReceive, radioTree } from '../acl/access.ts'

/** What somebody may read of the radio tree. */
export interface View {
  /** The same for all who may read the same. */
  readonly key: string
  /** Whether the view has the whole radio tree. */
  readonly isWhole: boolean
  /** The only livestreams that the filters can match. Undefined: any. */
  readonly livestreams: ReadonlySet<string> | undefined
  allows(topic: string): boolean
}

/** The view of a reader, by the filters of its credential (open.md §4). */
export function viewOf(filters: readonly string[]): View {
  const principal = { role: 'subscriber', username: '', filters } as const
  const named = filters.map((filter) => filter.split('/')[1] ?? '#')
  const isAny = named.some((level) => level === '#' || level === '+')
  return {
    key: [...filters].sort().join('\n'),
    isWhole: filters.includes(radioTree),
    livestreams: isAny ? undefined : new Set(named),
    allows: (topic) => mayReceive(principal, topic),
  }
}
