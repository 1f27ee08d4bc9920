import type { Change, Store } from '../../store/store.ts'
import type { Session } from './session.ts'

/**
 * Stores what sessions are subscribed to now; changes in quick succession share a commit. `changesOf`: what stores a
 * session as it is, nothing where it has ended.
 */
export function createRecordCommits(store: Store, changesOf: (session: Session) => readonly Change[]) {
  const storing = new Map<Session, { current: Promise<void>; next?: Promise<void> }>()

  return async (session: Session): Promise<void> => {
    const underway = storing.get(session)
    if (!underway) return commit(session)
    underway.next ??= Promise.allSettled([underway.current]).then(() => commit(session))
    return underway.next
  }

  function commit(session: Session): Promise<void> {
    const current = store.commit(changesOf(session))
    const underway = { current }
    storing.set(session, underway)
    const over = () => {
      if (storing.get(session) === underway && !('next' in underway)) storing.delete(session)
    }
    current.then(over, over)
    return current
  }
}
