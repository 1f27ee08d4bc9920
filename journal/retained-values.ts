import type { Message } from '../event/message.ts'
import { keepsStored } from '../store/commit.ts'
import type { Order } from '../store/store.ts'
import type { Returnable } from './returnable.ts'
import { createTopicTree } from './topic-tree.ts'

/** A value that a new subscriber gets. */
export interface RetainedValue {
  topic: string
  slot: string
  /** Event time, milliseconds since the epoch. */
  time: number
  expires?: number | undefined
  qos: 0 | 1 | 2
  payload: Buffer
  /** Position of its message in the journal. */
  position: number
  /** The rule by which a returning session gets the value. */
  queue: Message['queue']
  /** The `moment` at which this node sent the value live (`retained.ts`). Absent: not sent since the node's start. */
  sent?: number
}

/** Identifies a value, without its payload. */
export type ValueKey = Pick<RetainedValue, 'topic' | 'slot' | 'time' | 'position'>

export type RetainedValues = ReturnType<typeof createRetainedValues>

/**
 * Maximum number of values on one topic. Without it, a publisher that makes up new slots all the time would
 * fill the memory.
 */
const maxSlots = 100
/** Maximum number of bytes of all payloads on one topic. The latest value stays even if it is larger. */
const maxSlotBytes = 512 * 1024

/**
 * If the event time of a value is further ahead of the clock than this, milliseconds, the value does not keep out new
 * messages with an older event time (design.md §7).
 */
export const farFutureMs = 10 * 60 * 1000

/** The change that a commit under way makes to a slot. */
export interface SlotChange {
  topic: string
  slot: string
  /** Identifies the commit: the position of its message, or the array of the slots that it clears. */
  by: unknown
  /** The value that the commit stores. Undefined: the commit removes the stored value. */
  value?: RetainedValue | undefined
  /** By this rule, the store may keep its old value. Undefined: the commit always replaces or removes it. */
  order?: Order | undefined
}

/** A slot for which this node has commits under way. */
interface Unsettled {
  topic: string
  slot: string
  /** The value in the store. A `ValueKey`, without payload: the value was pushed out of memory. */
  stored: Held | ValueKey | undefined
  /** The changes of these commits, in the order of the commits. */
  changes: SlotChange[]
}

/** A value in memory. */
interface Held extends RetainedValue {
  /** Set while the slot has commits under way. */
  unsettled?: Unsettled | undefined
}

/**
 * Holds the retained values in memory by topic and slot, within bounds. While a slot has commits under way, it shows
 * the value that the store will have if all of them succeed. If a commit fails, the slot shows the value that the store
 * will have without that commit. Returning sessions get only stored values: `returnable` learns of no others.
 */
export function createRetainedValues(returnable: Returnable) {
  const tree = createTopicTree<Held>()
  /** Slots that show no value, but have commits under way. */
  const hidden = new Map<string, Unsettled>()
  /** Stored values that were pushed out of memory. */
  const pushedOut = new Map<string, ValueKey>()
  const unsettledAt = (at: Slot, shown: Held | undefined) => (shown ? shown.unsettled : hidden.get(keyOf(at)))

  return {
    get,
    /** The values of a topic, in the order of positions. */
    of,
    topics: tree.topics,
    /** The values that have expired. */
    expired: (now: number): RetainedValue[] =>
      [...tree.values()].filter(({ expires }) => isPast(expires, now)),
    /** Whether the store still has this value, and no commit under way changes its slot. */
    isStill(value: RetainedValue | ValueKey): boolean {
      const shown = get(value.topic, value.slot)
      return !unsettledAt(value, shown) && (shown ?? pushedOut.get(keyOf(value))) === value
    },

    /** The stored values that were pushed out of memory. */
    pushedOut: (): Iterable<ValueKey> => pushedOut.values(),

    /** Call it when the store has this value in its slot. */
    put(value: RetainedValue): void {
      pushedOut.delete(keyOf(value))
      tree.put(value)
      noteStored(value, returnable)
      pushOut(value.topic)
    },

    /** Call it when the store has no value in this slot. */
    remove(topic: string, slot: string): void {
      pushedOut.delete(keyOf({ topic, slot }))
      const value = get(topic, slot)
      if (!value) return
      tree.remove(value)
      returnable.removeLatest(topic, value.position)
    },

    /** Call it when a commit that changes a slot begins, in the order of the commits. */
    begin(change: SlotChange): void {
      const { topic, slot } = change
      const shown = get(topic, slot)
      const stored = shown ?? pushedOut.get(keyOf(change))
      const unsettled = unsettledAt(change, shown) ?? { topic, slot, stored, changes: [] }
      unsettled.changes.push(change)
      show(unsettled, shown)
    },

    /** Call it when the commit of a change has ended. Does nothing if `begin` was not called for the change. */
    settle(settled: Pick<SlotChange, 'topic' | 'slot' | 'by'>, isStored: boolean): void {
      const shown = get(settled.topic, settled.slot)
      const unsettled = unsettledAt(settled, shown)
      const change = unsettled?.changes.find(({ by }) => by === settled.by)
      if (!unsettled || !change) return
      unsettled.changes.splice(unsettled.changes.indexOf(change), 1)
      const before = unsettled.stored
      const stored = isStored ? leftBy(before, change) : before
      unsettled.stored = stored
      show(unsettled, shown)
      if (stored !== before) {
        pushedOut.delete(keyOf(settled))
        if (isHeld(stored)) noteStored(stored, returnable)
        else if (isHeld(before)) returnable.removeLatest(before.topic, before.position)
      }
      pushOut(settled.topic)
    },

    /** Whether the journal must keep the message at this position. */
    refersTo: (topic: string, position: number): boolean =>
      [...of(topic)].some((value) => value.position === position || mayHold(value.unsettled, position)) ||
      [...hidden.values()].some((each) => each.topic === topic && mayHold(each, position)),

    /** The stored values of all slots that show a value, in the order of positions. */
    storedOf: (topic: string): RetainedValue[] =>
      [...of(topic)]
        .map((value) => (value.unsettled ? value.unsettled.stored : value))
        .filter(isHeld)
        .sort((a, b) => a.position - b.position),
  }

  function get(topic: string, slot: string): Held | undefined {
    return tree.at(topic)?.get(slot)
  }

  function of(topic: string): Iterable<Held> {
    return tree.at(topic)?.values() ?? []
  }

  /** Makes a slot show the value that its changes lead to. `before`: the value that the slot shows so far. */
  function show(unsettled: Unsettled, before: Held | undefined): void {
    const { stored, changes } = unsettled
    const left = changes.reduce(leftBy, stored)
    const now = isHeld(left) ? left : undefined
    if (before) before.unsettled = undefined
    else hidden.delete(keyOf(unsettled))
    if (before && !now) tree.remove(before)
    if (now && now !== before) tree.put(now)
    if (changes.length === 0) return
    if (now) now.unsettled = unsettled
    else hidden.set(keyOf(unsettled), unsettled)
  }

  /**
   * Removes the oldest values of a topic from memory, until the others are within the bounds for number and bytes.
   * Slots with commits under way do not count and stay, because these commits may fail.
   */
  function pushOut(topic: string): void {
    if ((tree.at(topic)?.size ?? 0) <= 1) return
    const settled = [...of(topic)].filter(({ unsettled }) => !unsettled)
    for (const oldest of beyondBounds(settled)) {
      const { slot, time, position } = oldest
      tree.remove(oldest)
      pushedOut.set(keyOf(oldest), { topic, slot, time, position })
    }
  }
}

/** Returns the oldest values, as many as must go until the others are within the bounds. */
function beyondBounds(settled: readonly Held[]): readonly Held[] {
  let bytes = settled.reduce((sum, { payload }) => sum + payload.length, 0)
  let count = 0
  for (const { payload } of settled) {
    const left = settled.length - count
    if (left <= maxSlots && (bytes <= maxSlotBytes || left === 1)) break
    bytes -= payload.length
    count++
  }
  return settled.slice(0, count)
}

/** If returning sessions get only the newest value of this topic, they get this value from now on. */
function noteStored({ topic, qos, position, queue }: RetainedValue, returnable: Returnable): void {
  if (queue.keep === 'latest') returnable.setLatest({ topic, qos, position, ...queue })
}

/** Whether the value at a position is stored in the slot, or may be when the commits under way have ended. */
function mayHold(unsettled: Unsettled | undefined, position: number): boolean {
  if (!unsettled) return false
  const { stored, changes } = unsettled
  return (
    (isHeld(stored) && stored.position === position) ||
    changes.some(({ value }) => value?.position === position)
  )
}

type Slot = Pick<SlotChange, 'topic' | 'slot'>

function keyOf({ topic, slot }: Slot): string {
  return `${topic}\n${slot}`
}

function isHeld(value: Held | ValueKey | undefined): value is Held {
  return value !== undefined && 'payload' in value
}

function isPast(time: number | undefined, now: number): boolean {
  return time !== undefined && time <= now
}

/** The value that a slot has after a change. */
function leftBy(
  before: Held | ValueKey | undefined,
  { value, order }: SlotChange,
): Held | ValueKey | undefined {
  return before && order && keepsStored(before.time, order) ? before : value
}

/** Returns the newest value that is still valid. `values` are in the order of their positions. */
export function newestOf(values: Iterable<RetainedValue>, now: number): RetainedValue | undefined {
  let newest: RetainedValue | undefined
  for (const value of values) {
    if (!isPast(value.expires, now) && !(newest && keepsStored(newest.time, orderAt(value.time, now))))
      newest = value
  }
  return newest
}

export function orderAt(time: number, now: number): Order {
  return { time, horizon: now + farFutureMs }
}
