import { createHash } from 'node:crypto'
import type { EventClass } from '../event/kind.ts'

/** A client that has logged in, with its permissions. The access rules use nothing else of a credential. */
export type Principal = Publisher | Subscriber

/** A client that publishes to the inboxes of its institutions, and reads their feedback (service.md §5). */
export interface Publisher {
  role: 'publisher'
  username: string
  institutions: readonly string[]
  /** Classes of events that the publisher may publish. Empty: all classes. */
  classes: readonly EventClass[]
}

/** A client that reads those parts of the radio tree that its filters match, and never publishes (service.md §5). */
export interface Subscriber {
  role: 'subscriber'
  username: string
  filters: readonly string[]
  /**
   * Only for a temporary credential: its user. The client's session ends with its connection. Until then, no
   * other user can take over the session.
   */
  temporaryOf?: string
}

/** Whether the client uses the temporary credential of a page. The broker allows such a client less than others. */
export function isTemporary(principal: Principal): boolean {
  return principal.role === 'subscriber' && principal.temporaryOf !== undefined
}

/**
 * A key that is the same for all principals with the same permissions, even if their usernames differ. A persistent
 * session belongs to such a key, not to a username. So a client can resume its session after its credential was rotated
 * (design.md §5 Sessions).
 */
export function permissionKey(principal: Principal): string {
  const permissions =
    principal.role === 'publisher'
      ? [principal.role, sorted(principal.institutions), sorted(principal.classes)]
      : [principal.role, sorted(principal.filters), ...[principal.temporaryOf ?? []].flat()]
  return createHash('sha256').update(JSON.stringify(permissions)).digest('base64url')
}

/** Sorts permissions and removes repetitions: two lists that permit the same become equal. */
function sorted(permissions: readonly string[]): string[] {
  return [...new Set(permissions)].sort()
}
