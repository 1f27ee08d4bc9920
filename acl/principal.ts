import { createHash } from 'node:crypto'
import type { EventClass } from '../event/kind.ts'

/** An MQTT client that has logged in, with its permissions. */
export type Principal = (Publisher | Subscriber) & {
  /** What its client ids must begin with. It is no permission: sessions do not belong to it. */
  clientIdPrefix?: string
}

/** A client that publishes to the inboxes of its institutions, and reads their feedback (service.md §5). */
interface Publisher {
  role: 'publisher'
  username: string
  institutions: readonly string[]
  /** Classes of events that the publisher may publish. Empty: all classes. */
  classes: readonly EventClass[]
}

/** A client that reads what its filters match in the radio tree, and never publishes (service.md §5). */
interface Subscriber {
  role: 'subscriber'
  username: string
  filters: readonly string[]
  /** Only for a temporary credential: its user. No other user can take over the client's session. */
  temporaryOf?: string
}

/** A program that reads over HTTPS what its filters match (open.md §4). The broker refuses its log-in. */
export interface Reader {
  username: string
  filters: readonly string[]
}

/** Whether the client uses the temporary credential of a page. */
export function isTemporary(principal: Principal): boolean {
  return principal.role === 'subscriber' && principal.temporaryOf !== undefined
}

/**
 * A hash of the permissions, without the username. Persistent sessions belong to this key, so that a rotated credential
 * resumes them (design.md §5 Sessions).
 */
export function permissionKey(principal: Principal): string {
  const permissions =
    principal.role === 'publisher'
      ? [principal.role, sorted(principal.institutions), sorted(principal.classes)]
      : [principal.role, sorted(principal.filters), ...(principal.temporaryOf ? [principal.temporaryOf] : [])]
  return createHash('sha256').update(JSON.stringify(permissions)).digest('base64url')
}

/** Sorts permissions and removes repetitions: two lists that permit the same become equal. */
function sorted(permissions: readonly string[]): string[] {
  return [...new Set(permissions)].sort()
}
