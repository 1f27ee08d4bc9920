import { ConditionFailed } from '../../store/store.ts'
import type { Session } from './session.ts'

/**
 * Stores sessions as they are, for each one commit after the other: each says which record it replaces. Changes in quick
 * succession share a commit.
 */
export function createRecordCommits(commit: (session: Session) => Promise<void>) {
  const storing = new Map<Session, { current: Promise<void>; next?: Promise<void> }>()

  return async (session: Session): Promise<void> => {
    const underway = storing.get(session)
    if (!underway) return begin(session)
    underway.next ??= Promise.allSettled([underway.current]).then(() => begin(session))
    return underway.next
  }

  function begin(session: Session): Promise<void> {
    const current = commit(session)
    const underway = { current }
    storing.set(session, underway)
    const over = () => {
      if (storing.get(session) === underway && !('next' in underway)) storing.delete(session)
    }
    current.then(over, over)
    return current
  }
}

/** Each in a commit of its own, so that one that is refused keeps back no other. Rejects with the first failure. */
export async function eachOf(
  all: readonly Session[],
  work: (session: Session) => Promise<void>,
): Promise<void> {
  const results = await Promise.allSettled(all.map(work))
  const isFailure = (result: PromiseSettledResult<void>) =>
    result.status === 'rejected' && !(result.reason instanceof ConditionFailed)
  const failed = results.find(isFailure)
  if (failed?.status === 'rejected') throw failed.reason
}
