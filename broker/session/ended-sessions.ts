import type { Nodes } from '../../store/nodes/nodes.ts'
import type { Store } from '../../store/store.ts'
import type { Known, KnownSessions } from './known-sessions.ts'
import type { Progress } from './progress.ts'
import { eachOf } from './record-commits.ts'

/** Ends sessions whose time is over, or whose node is gone. One node does it for all. */
export function createEndedSessions(parts: {
  store: Store
  nodes: Nodes
  known: KnownSessions
  progress: Progress
  /** Removes a session whose client is not connected; rejects with `ConditionFailed` where it was stored meanwhile. */
  removeStored: (session: Known) => Promise<void>
}) {
  const { store, nodes, known, progress, removeStored } = parts

  return {
    endGone,

    /** Forgets sessions that have been offline for too long. Returns how many. */
    async sweep(): Promise<number> {
      if (!nodes.isLeader()) return 0
      // What could not be stored when they went.
      await endGone()
      const all = [...known.values()]
      const expired = all.filter(known.hasExpired)
      await eachOf(expired, removeStored)
      const named = new Set(all.map(({ node }) => node))
      const over = progress.ended().filter((run) => !named.has(run))
      await store.commit(over.map(progress.removal))
      for (const run of over) progress.removed(run)
      return expired.length
    },
  }
  /** Notes how far the sessions of nodes that are gone have got, and ends their clean ones. */
  async function endGone(): Promise<void> {
    if (!nodes.isLeader()) return
    const gone = [...known.values()].filter(({ node }) => node !== undefined && !nodes.isLiving(node))
    const runs = new Set(gone.flatMap(({ node }) => node ?? []))
    await eachOf([...runs], progress.endRun)
    await eachOf(
      gone.filter(({ clean }) => clean),
      removeStored,
    )
  }
}
