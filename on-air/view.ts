import { livestreamsIn, mayReceive, radioTree } from '../acl/access.ts'

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

const views = new WeakMap<readonly string[], View>()

/** The view of a reader, by the filters of its credential (open.md §4). Made once for each list. */
export function viewOf(filters: readonly string[]): View {
  const known = views.get(filters)
  if (known) return known
  const view = makeView(filters)
  views.set(filters, view)
  return view
}

function makeView(filters: readonly string[]): View {
  const principal = { role: 'subscriber', username: '', filters } as const
  return {
    key: [...filters].sort().join('\n'),
    isWhole: filters.includes(radioTree),
    livestreams: livestreamsIn(filters),
    allows: (topic) => mayReceive(principal, topic),
  }
}
