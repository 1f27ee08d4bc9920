import type { Change, Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { itemsIn, sequencesOf } from './queue.ts'
import type { HeldQueue } from './queue-locks.ts'
import type { QueuesInMemory } from './queues-in-memory.ts'
import type { Transitions } from './transitions.ts'
import type { WorkItem } from './work-item.ts'

/** One commit removes at most so many items: others would wait too long for a larger one. */
export const mostPassedAtOnce = 500

/** Removes items that are not worth delivering any more, without reading their payloads. */
export function createPassedOver(parts: {
  store: Store
  inMemory: QueuesInMemory
  transitions: Transitions
  metrics: Pick<Metrics, 'deliveriesStale'>
}) {
  const { store, inMemory, transitions, metrics } = parts

  /** `alongside`: the changes for the same commit, of the items that still wait. At most `mostPassedAtOnce` items. */
  return async (
    name: HeldQueue,
    stale: readonly WorkItem[],
    alongside: (gone: readonly WorkItem[]) => Promise<readonly Change[]>,
  ): Promise<void> => {
    const gone = itemsIn(inMemory.get(name), sequencesOf(stale))
    if (gone.length === 0) return
    const noted = await alongside(gone)
    const { changes, apply } = transitions.removing(name, gone)
    await store.commit([...changes, ...noted])
    apply()
    inMemory.queueOf(name).stale += gone.length
    metrics.deliveriesStale.inc(gone.length)
  }
}
