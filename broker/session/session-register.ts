import type { Principal } from '../../acl/principal.ts'
import type { Session } from './session.ts'

/** The sessions by client id, and the persistent ones of each credential: on all nodes, connected or not. */
export function createRegister() {
  const sessions = new Map<string, Session>()
  /** By user name of who used the session last. */
  const persistent = new Map<string, Set<Session>>()

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
    persistentOf: (username: string): ReadonlySet<Session> => persistent.get(username) ?? none,

    /** In the place of another with the same client id. */
    add(session: Session): void {
      const before = sessions.get(session.clientId)
      if (before === session) return
      if (before) leave(before)
      sessions.set(session.clientId, session)
      join(session)
    },

    delete(session: Session): void {
      if (sessions.get(session.clientId) !== session) return
      sessions.delete(session.clientId)
      leave(session)
    },

    /** Who uses it now: a rotated credential takes along the sessions that it resumes. */
    setPrincipal(session: Session, principal: Principal): void {
      const isCounted = sessions.get(session.clientId) === session
      if (isCounted) leave(session)
      session.principal = principal
      if (isCounted) join(session)
    },
  }

  function join(session: Session): void {
    if (session.clean) return
    const { username } = session.principal
    const held = persistent.get(username)
    if (held) held.add(session)
    else persistent.set(username, new Set([session]))
  }

  function leave(session: Session): void {
    const { username } = session.principal
    const held = persistent.get(username)
    if (held?.delete(session) && held.size === 0) persistent.delete(username)
  }
}

const none: ReadonlySet<Session> = new Set()
