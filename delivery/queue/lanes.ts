import { laneOf, livestreamsOf } from './lane-of.ts'
import { byLaneOf, type Queue, type Waiting, waitingIn } from './queue.ts'
import type { WorkItem } from './work-item.ts'

/** The lanes of a queue that have items. */
export function lanesOf(queue: Queue): Set<string> {
  return new Set([...byLaneOf(queue).keys(), ...queue.aside.map(laneOf)])
}

/** Like `waitingIn`, for one lane. `isBlocked`: its first item waits for items of other lanes. */
export function waitingInLane(queue: Queue, lane: string, now: number): Waiting & { isBlocked: boolean } {
  const { found, isBlocked } = firstTwo(queue, lane)
  const aside = queue.aside.filter((item) => laneOf(item) === lane)
  return { isBlocked, ...waitingIn({ inOrder: found, aside }, now) }
}

/** The first items of a lane, at most two. One for several livestreams waits for those before it in their lanes. */
function firstTwo(queue: Queue, lane: string): { found: WorkItem[]; isBlocked: boolean } {
  const { inOrder, ofSeveral } = queue
  // Behind a lane that hangs, thousands of items may wait: a search would take milliseconds.
  if (ofSeveral === 0) return { found: byLaneOf(queue).get(lane)?.slice(0, 2) ?? [], isBlocked: false }
  const before = new Set<string>()
  let isAllBlocked = false
  let isBlocked = false
  const found: WorkItem[] = []
  for (const item of inOrder) {
    const livestreams = livestreamsOf(item)
    if (laneOf(item) !== lane) {
      if (livestreams.length === 0) isAllBlocked = true
      for (const id of livestreams) before.add(id)
      continue
    }
    const waits = livestreams.length === 0 ? before.size > 0 : livestreams.some((id) => before.has(id))
    isBlocked = found.length === 0 && (isAllBlocked || waits)
    if (isAllBlocked || waits) break
    found.push(item)
    if (found.length === 2) break
  }
  return { found, isBlocked }
}
