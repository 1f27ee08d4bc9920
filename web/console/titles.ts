import { commands } from './commands.ts'
import { permissionOf } from './placed.ts'
import { capital } from './words.ts'

const named: readonly (readonly [group: string, views: Readonly<Record<string, string>>])[] = [
  [
    'Watch',
    { '': 'Overview', trace: 'Trace', livestreams: 'Livestreams', webhooks: 'Webhooks', outputs: 'Outputs' },
  ],
  [
    'Your institution',
    {
      'own-livestreams': 'Livestreams',
      'own-refusals': 'Refusals',
      'own-events': 'Events',
      'own-report': 'Weekly report',
      'own-check': 'Dry run',
      'own-credentials': 'Credentials',
      'own-contact': 'Contact',
      'own-subscriptions': 'Webhooks',
    },
  ],
  ['Access', { credentials: 'Credentials', users: 'Users', clients: 'Clients' }],
  [
    'Hub',
    { feed: 'Feed', lifecycle: 'HTTPS API', audit: 'Audit log', node: 'Node', commands: 'All commands' },
  ],
]
const known = named.flatMap(([, views]) => Object.keys(views))
const views = new Set(commands.flatMap(({ console }) => console?.view ?? []))
const others = [...views]
  .filter((view) => !known.includes(view))
  .map((view) => [view, capital(view)] as const)

/** The views below `/console`, grouped by purpose, with their titles. A view that only commands name is in `More`. */
const groups = others.length > 0 ? [...named, ['More', Object.fromEntries(others)] as const] : named

const titles = new Map(groups.flatMap(([, views]) => Object.entries(views)))

/**
 * The groups with the views that a user with these permissions may open. `lacking`: the titles of the others, by the
 * permission that opens them.
 */
export function groupsFor(permissions: readonly string[]) {
  return groups.flatMap(([group, views]) => {
    const open: [view: string, title: string][] = []
    const lacking = new Map<string, string[]>()
    for (const [view, title] of Object.entries(views)) {
      const permission = permissionOf(view)
      if (permissions.includes(permission)) open.push([view, title])
      else lacking.set(permission, [...(lacking.get(permission) ?? []), title])
    }
    return open.length > 0 ? [[group, open, lacking] as const] : []
  })
}

/** The title of a view. Undefined: there is no such view. */
export function titleOf(view: string): string | undefined {
  return titles.get(view)
}
