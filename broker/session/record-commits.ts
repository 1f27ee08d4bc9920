import type { Store } from '../../store/store.ts'
import type { Session } from './session.ts'
import { recordChange } from './session-store.ts'

/** Stores what sessions are subscribed to now; changes in quick succession share a commit. */
export function createRecordCommits(store: Store, isCurrent: (session: Session) => boolean) {
  const storing = new Map<Session, { current: Promise<void>; next?: Promise<void> }>()

  return async (session: Session): Promise<void> => {
    const underway = storing.get(session)
    if (!underway) return commit(session)
    underway.next ??= Promise.allSettled([underway.current]).then(() => commit(session))
    return underway.next
  }

  function commit(session: Session): Promise<void> {
    const current = store.commit(isCurrent(session) ? [recordChange(session)] : [])
    const underway = { current }
    storing.set(session, underway)
    const over = () => {
      if (storing.get(session) === underway && !('next' in underway)) storing.delete(session)
    }
    current.then(over, over)
    return current
  }
}
