import type { WorkItem } from './work-item.ts'

/*
 * A lane is what a queue has for one livestream. Deliveries of different lanes run side by side, those of one lane one by
 * one (deliveries.md, "Lanes"). An item for several livestreams stands in the lane of its first one, and keeps its place
 * in the order of all of them.
 */

/** The lane of items whose livestreams the hub does not know. They wait for all, and all wait for them. */
const unknownLane = '?'

const known = new WeakMap<object, readonly string[]>()

/** The livestreams of an item. Empty: the hub does not know them. */
export function livestreamsOf({
  element,
  details,
}: Pick<WorkItem, 'element' | 'details'>): readonly string[] {
  const of = element ?? details
  const before = known.get(of)
  if (before) return before
  const { livestreamIds, livestreamId } = details
  const found = element
    ? Object.keys(element.livestreams)
    : typeof livestreamIds === 'string'
      ? livestreamIds.split(',')
      : typeof livestreamId === 'string'
        ? [livestreamId]
        : []
  known.set(of, found)
  return found
}

/** The lane in which an item stands. */
export function laneOf(item: Pick<WorkItem, 'element' | 'details'>): string {
  return livestreamsOf(item)[0] ?? unknownLane
}

/** Whether two items may not be under way at once. */
export function shareLivestream(one: readonly string[], other: readonly string[]): boolean {
  return one.length === 0 || other.length === 0 || one.some((id) => other.includes(id))
}
