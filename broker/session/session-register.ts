import type { Principal } from '../../acl/principal.ts'
import type { Session } from './session.ts'

/** The sessions by client id, and how many persistent ones each credential has: on all nodes, connected or not. */
export function createRegister() {
  const sessions = new Map<string, Session>()
  /** By user name of who used the session last. */
  const persistent = new Map<string, number>()

  /** One text for all sessions of the same permissions: comparing them is comparing addresses. */
  const permissions = new Map<string, string>()

  return {
    permission(text: string): string {
      const known = permissions.get(text)
      if (known === undefined) permissions.set(text, text)
      return known ?? text
    },
    get: (clientId: string): Session | undefined => sessions.get(clientId),
    values: () => sessions.values(),
    isCurrent: (session: Session): boolean => sessions.get(session.clientId) === session,
    persistentOf: (username: string): number => persistent.get(username) ?? 0,

    /** In the place of another with the same client id. */
    add(session: Session): void {
      const before = sessions.get(session.clientId)
      if (before === session) return
      if (before) count(before, -1)
      sessions.set(session.clientId, session)
      count(session, 1)
    },

    delete(session: Session): void {
      if (sessions.get(session.clientId) !== session) return
      sessions.delete(session.clientId)
      count(session, -1)
    },

    /** Who uses it now: a rotated credential takes along the sessions that it resumes. */
    setPrincipal(session: Session, principal: Principal): void {
      const isCounted = sessions.get(session.clientId) === session
      if (isCounted) count(session, -1)
      session.principal = principal
      if (isCounted) count(session, 1)
    },
  }

  function count({ clean, principal }: Session, by: 1 | -1): void {
    if (clean) return
    const left = (persistent.get(principal.username) ?? 0) + by
    if (left > 0) persistent.set(principal.username, left)
    else persistent.delete(principal.username)
  }
}
