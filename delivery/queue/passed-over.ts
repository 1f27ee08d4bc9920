import type { Change, Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { itemsIn, sequencesOf } from './queue.ts'
import type { HeldQueue } from './queue-locks.ts'
import type { QueuesInMemory } from './queues-in-memory.ts'
import type { WorkItem } from './work-item.ts'
import { removal, workPrefix } from './work-records.ts'

/** One commit removes at most so many items: others would wait too long for a larger one. */
export const mostPassedAtOnce = 500

/** Removes items that are not worth delivering any more, without reading their payloads. */
export function createPassedOver(parts: {
  store: Store
  inMemory: QueuesInMemory
  metrics: Pick<Metrics, 'deliveriesStale'>
}) {
  const { store, inMemory, metrics } = parts

  /** `alongside`: the changes for the same commit, of the items that still wait. At most `mostPassedAtOnce` items. */
  return async (
    name: HeldQueue,
    stale: readonly WorkItem[],
    alongside: (gone: readonly WorkItem[]) => Promise<readonly Change[]>,
  ): Promise<void> => {
    const gone = itemsIn(inMemory.get(name), sequencesOf(stale))
    if (gone.length === 0) return
    await store.commit([...gone.map((item) => removal(workPrefix, name, item)), ...(await alongside(gone))])
    inMemory.take(name, gone)
    inMemory.queueOf(name).stale += gone.length
    metrics.deliveriesStale.inc(gone.length)
  }
}
