/** Views of the console, by their paths below `/console`. */
export type View =
  | ''
  | 'trace'
  | 'livestreams'
  | 'webhooks'
  | 'credentials'
  | 'users'
  | 'clients'
  | 'feed'
  | 'lifecycle'
  | 'audit'
  | 'node'

/**
 * The view of each command of `hubctl`. `loses`: something is removed for good, so the console asks first.
 * `test/web/console/operations.test.ts` checks that no command is missing.
 */
export const operations = {
  status: { view: '' },
  trend: { view: '' },
  'events.slow': { view: '' },

  'events.tail': { view: 'trace' },
  'events.list': { view: 'trace' },
  'events.show': { view: 'trace' },
  check: { view: 'trace' },

  'feed.lookup': { view: 'livestreams' },
  'events.newest': { view: 'livestreams' },
  'clients.count': { view: 'livestreams' },
  'retained.list': { view: 'livestreams' },
  'retained.clear': { view: 'livestreams', loses: true },

  'queues.list': { view: 'webhooks' },
  'queues.attempts': { view: 'webhooks' },
  'queues.dead-letters': { view: 'webhooks' },
  'queues.replay': { view: 'webhooks' },
  'subscriptions.list': { view: 'webhooks' },
  'subscriptions.show': { view: 'webhooks' },
  'subscriptions.test': { view: 'webhooks' },
  'subscriptions.pause': { view: 'webhooks' },
  'subscriptions.resume': { view: 'webhooks' },
  'subscriptions.remove': { view: 'webhooks', loses: true },

  'credentials.list': { view: 'credentials' },
  'credentials.show': { view: 'credentials' },
  'credentials.add': { view: 'credentials' },
  'credentials.rotate': { view: 'credentials' },
  'credentials.revoke': { view: 'credentials', loses: true },

  'users.list': { view: 'users' },
  'users.add': { view: 'users' },
  'users.remove': { view: 'users', loses: true },
  'users.reset-password': { view: 'users' },

  'clients.list': { view: 'clients' },
  'clients.disconnect': { view: 'clients' },
  'sessions.list': { view: 'clients' },
  'sessions.show': { view: 'clients' },
  'sessions.drop': { view: 'clients', loses: true },

  'feed.status': { view: 'feed' },
  'feed.refresh': { view: 'feed' },
  'feed.diff': { view: 'feed' },

  'lifecycle.status': { view: 'lifecycle' },
  'lifecycle.announce': { view: 'lifecycle' },
  'lifecycle.brownout': { view: 'lifecycle' },
  'lifecycle.retire': { view: 'lifecycle', loses: true },

  audit: { view: 'audit' },

  config: { view: 'node' },
  'import.aedes-redis': { view: 'node' },
  'keys.list': { view: 'node' },
  'keys.rotate': { view: 'node', loses: true },
  'store.accept': { view: 'node', loses: true },
} as const satisfies Record<string, { view: View; loses?: true }>

export type OperationName = keyof typeof operations

/** Whether a command removes something for good. */
export function loses(name: OperationName): boolean {
  return 'loses' in operations[name]
}
