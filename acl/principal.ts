import { createHash } from 'node:crypto'
import type { EventClass } from '../event/kind.ts'

/** A client that has logged in, and all its permissions. Nothing else about a credential decides an access. */
export type Principal = Publisher | Subscriber

/** Writes to the inboxes of its institutions and reads their feedback (service.md §5). */
export interface Publisher {
  role: 'publisher'
  username: string
  institutions: readonly string[]
  /** Classes of events it may publish; empty: all of them. */
  classes: readonly EventClass[]
}

/** Reads the parts of the radio tree its filters cover, and never publishes (service.md §5). */
export interface Subscriber {
  role: 'subscriber'
  username: string
  filters: readonly string[]
  /** The user of a temporary credential. Its sessions end with their connections, and no other user resumes them. */
  temporaryOf?: string
}

/** Whether the credential is that of a page, valid for an hour at most. Such a principal may do less than others. */
export function isTemporary(principal: Principal): boolean {
  return principal.role === 'subscriber' && principal.temporaryOf !== undefined
}

/**
 * A key that is the same for all principals with the same permissions, whatever their usernames. A persistent session
 * belongs to the permissions that it was made with, so that the successor of a rotated credential resumes the session
 * (design.md §5 Sessions).
 */
export function permissionKey(principal: Principal): string {
  const permissions =
    principal.role === 'publisher'
      ? [principal.role, sorted(principal.institutions), sorted(principal.classes)]
      : [principal.role, sorted(principal.filters), ...[principal.temporaryOf ?? []].flat()]
  return createHash('sha256').update(JSON.stringify(permissions)).digest('base64url')
}

/** Order and repetition of permissions mean nothing. */
function sorted(permissions: readonly string[]): string[] {
  return [...new Set(permissions)].sort()
}
