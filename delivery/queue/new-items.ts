import type { Sequences } from '../../store/nodes/sequences.ts'
import type { Element } from '../worth/element.ts'
import type { SharedItems } from './shared-items.ts'
import type { Details, PlannedWork, WorkGroup, WorkItem } from './work-item.ts'
import { itemChange, namingChange } from './work-records.ts'

/** Makes items, each with the next sequence. */
export function createNewItems(
  sequences: Pick<Sequences, 'next'>,
  sharedItems: Pick<SharedItems, 'plan' | 'add'>,
  clock: () => number,
) {
  return {
    newItem,

    /** Plans the items of a group. Calls `shown` with each item after the commit of the event. */
    append(
      { content, queues, details, element }: WorkGroup,
      messageId: string,
      shown: (queue: string, item: WorkItem) => void,
    ): PlannedWork {
      if ('nth' in content && queues.length > 1) {
        const item = newItem(messageId, details, element)
        return {
          changes: sharedItems.plan(queues, item, content.nth),
          show(first: number) {
            const shared = sharedItems.add(queues, { ...item, position: first + content.nth })
            for (const queue of queues) shown(queue, shared)
          },
        }
      }
      const added = queues.map((queue) => ({ queue, item: newItem(messageId, details, element) }))
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

  function newItem(messageId: string, details: Details, element?: Element | undefined): WorkItem {
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
