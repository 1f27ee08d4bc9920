import type { Sequences } from '../../store/nodes/sequences.ts'
import type { Element } from '../worth/element.ts'
import type { Details, PlannedWork, WorkGroup, WorkItem } from './work-item.ts'
import { itemChange, namingChange } from './work-records.ts'

/** Makes items, each with the next sequence. */
export function createNewItems(sequences: Pick<Sequences, 'next'>, clock: () => number) {
  return {
    newItem,

    /** Plans the items of a group. Calls `shown` with each item after the commit of the event. */
    append(
      { content, items }: WorkGroup,
      messageId: string,
      shown: (queue: string, item: WorkItem) => void,
    ): PlannedWork {
      const added = items.map(({ queue, details, element }) => ({
        queue,
        item: newItem(messageId, details, element),
      }))
      return {
        changes: added.map(({ queue, item }) =>
          'nth' in content
            ? namingChange(queue, item, content.nth)
            : itemChange(queue, item, content.payload),
        ),
        show(first: number) {
          const position = 'nth' in content ? first + content.nth : 0
          for (const { queue, item } of added) shown(queue, { ...item, position })
        },
      }
    },
  }

  function newItem(messageId: string, details: Details, element?: Element): WorkItem {
    return {
      position: 0,
      sequence: sequences.next(),
      messageId,
      details,
      ...(element && { element }),
      seen: performance.now(),
      enqueuedAt: clock(),
      tries: 0,
      refusals: 0,
      attempts: [],
    }
  }
}
