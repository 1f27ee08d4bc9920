import type { Message } from '../event/message.ts'
import { keepsStored } from '../store/commit.ts'
import type { CommitEnd } from '../store/commit-together.ts'
import { storeKeys } from '../store/keys.ts'
import type { Change, Order } from '../store/store.ts'
import { clockToleranceMs } from './entry.ts'
import {
  beyondBounds,
  type RetainedValue,
  type Slot,
  type SlotChange,
  type ValueKey,
} from './retained-value.ts'
import type { Returnable } from './returnable.ts'
import { createTopicTree } from './topic-tree.ts'

/** Live subscribers: pages, which get a message last, or all others. */
export type Audience = 'pages' | 'others'

/**
 * Limit for event times ahead of the clock, milliseconds. A stored event time beyond this limit blocks no new message
 * (design.md §7).
 */
export const farFutureMs = 10 * 60 * 1000

export const retainedPrefix = storeKeys.retained.prefix
/** The store puts the first position of the commit in front of the value (`Numbered`). */
const first = { nth: 0, at: 'value' } as const

/**
 * A node's clock counts as behind if the newest message is more than `clockToleranceMs` ahead of the clock. Under this
 * key, the store has the first position of the last commit that a node made while its clock was behind.
 */
export const clockBehindKey = storeKeys.clockBehind.prefix

/** A slot for which this node has commits under way. */
interface Unsettled {
  topic: string
  slot: string
  /** The value in the store. A `ValueKey`: the value was pushed out of memory. */
  stored: HeldValue | ValueKey | undefined
  /** The changes of these commits, in the order of the commits. */
  changes: SlotChange[]
}

/** A value in memory. */
interface HeldValue extends RetainedValue {
  /** Set while the slot has commits under way. */
  unsettled?: Unsettled | undefined
}

/** Ends a change of a slot, as its commit has ended. */
type EndChange = (how: CommitEnd) => void

export type RetainedValues = ReturnType<typeof createRetainedValues>

/**
 * Holds the retained values in memory by topic and slot, within bounds. A slot with commits under way shows the value
 * that they will leave (docs/decisions, "A slot shows what its commits under way will leave"). Returning sessions
 * (`returnable`) get stored values only.
 */
export function createRetainedValues(returnable: Returnable) {
  const slots = createSlots()
  /** Slots that show no value, but have commits under way. */
  const hidden = new Map<string, Unsettled>()
  /** Stored values that were pushed out of memory. */
  const pushedOut = new Map<string, ValueKey>()
  const silentListeners: ((topic: string) => void)[] = []
  const changedSilently = (topic: string) => {
    for (const listener of silentListeners) listener(topic)
  }
  const unsettledAt = (at: Slot, shown: HeldValue | undefined) =>
    shown ? shown.unsettled : hidden.get(keyOf(at))

  return {
    /** The value in a slot. */
    get: slots.get as (topic: string, slot: string) => RetainedValue | undefined,
    /** The values of a topic, in the order of positions. */
    of: slots.of as (topic: string) => Iterable<RetainedValue>,
    topics: slots.topics,
    /** The topics with a value that will expire. */
    expiring: slots.expiring,
    /** Calls `listener` when the values of a topic may have changed without a message on the topic. */
    onSilentChange: (listener: (topic: string) => void): void => void silentListeners.push(listener),
    /** The values that have expired. */
    expired: (now: number): RetainedValue[] =>
      [...slots.expiring].flatMap((topic) =>
        [...slots.of(topic)].filter(({ expires }) => isPast(expires, now)),
      ),
    /** Whether the store still has this value, and no commit under way changes its slot. */
    isStill(value: RetainedValue | ValueKey): boolean {
      const shown = slots.get(value.topic, value.slot)
      return !unsettledAt(value, shown) && (shown ?? pushedOut.get(keyOf(value))) === value
    },

    /** The stored values that were pushed out of memory. */
    pushedOut: (): Iterable<ValueKey> => pushedOut.values(),

    /** Takes a value that the store has in its slot. */
    put(value: RetainedValue): void {
      pushedOut.delete(keyOf(value))
      slots.put(value)
      noteStored(value, returnable)
      pushOut(value.topic)
    },

    /** Follows the store, which has no value in this slot. */
    remove(topic: string, slot: string): void {
      pushedOut.delete(keyOf({ topic, slot }))
      const value = slots.get(topic, slot)
      if (!value) return
      slots.remove(value)
      returnable.removeLatest(topic, value.position)
      changedSilently(topic)
    },

    begin,

    /** Whether the journal must keep the message at this position. */
    refersTo: (topic: string, position: number): boolean =>
      [...slots.of(topic)].some(
        (value) => value.position === position || mayHold(value.unsettled, position),
      ) || [...hidden.values()].some((each) => each.topic === topic && mayHold(each, position)),

    /** The stored values of all slots that show a value, in the order of positions. */
    storedOf(topic: string): RetainedValue[] {
      const shown = [...slots.of(topic)]
      if (shown.every(({ unsettled }) => !unsettled)) return shown
      return shown
        .map((value) => (value.unsettled ? value.unsettled.stored : value))
        .filter(isHeld)
        .sort((a, b) => a.position - b.position)
    },
  }

  /**
   * Makes a slot show what a commit under way will leave. Commits change a slot in the order of these calls. The
   * returned function ends the change. It does nothing if another node has changed the slot meanwhile.
   */
  function begin(change: SlotChange): EndChange {
    const { topic, slot } = change
    const shown = slots.get(topic, slot)
    const stored = shown ?? pushedOut.get(keyOf(change))
    const unsettled = unsettledAt(change, shown) ?? { topic, slot, stored, changes: [] }
    unsettled.changes.push(change)
    showLeft(unsettled, shown)
    return (how) => end(change, how !== 'failed')
  }

  function end(change: SlotChange, isStored: boolean): void {
    const shown = slots.get(change.topic, change.slot)
    const unsettled = unsettledAt(change, shown)
    const index = unsettled?.changes.indexOf(change) ?? -1
    if (!unsettled || index < 0) return
    unsettled.changes.splice(index, 1)
    const before = unsettled.stored
    const stored = isStored ? leftBy(before, change) : before
    unsettled.stored = stored
    showLeft(unsettled, shown)
    if (stored !== before) {
      pushedOut.delete(keyOf(change))
      if (isHeld(stored)) noteStored(stored, returnable)
      else if (isHeld(before)) returnable.removeLatest(before.topic, before.position)
    }
    pushOut(change.topic)
    if (!isStored || change.value === undefined) changedSilently(change.topic)
  }

  /** Makes a slot show the value that its changes lead to. `before`: the value that the slot shows so far. */
  function showLeft(unsettled: Unsettled, before: HeldValue | undefined): void {
    const { stored, changes } = unsettled
    const left = changes.reduce(leftBy, stored)
    const now = isHeld(left) ? left : undefined
    if (before) before.unsettled = undefined
    else hidden.delete(keyOf(unsettled))
    if (before && !now) slots.remove(before)
    if (now && now !== before) slots.put(now)
    if (changes.length === 0) return
    if (now) now.unsettled = unsettled
    else hidden.set(keyOf(unsettled), unsettled)
  }

  /**
   * Removes the oldest values of a topic from memory until the rest is within the bounds. Skips slots with commits
   * under way, and does not count them, because these commits may fail.
   */
  function pushOut(topic: string): void {
    if (slots.count(topic) <= 1) return
    const settled = [...slots.of(topic)].filter(({ unsettled }) => !unsettled)
    for (const oldest of beyondBounds(settled)) {
      const { slot, time, position } = oldest
      slots.remove(oldest)
      pushedOut.set(keyOf(oldest), { topic, slot, time, position })
    }
  }
}

/**
 * Returns the changes that store retained messages. `messages`: those of the commit, in its order. `at`: the time that
 * the journal gives them.
 */
function changes(messages: readonly Message[], now: number, at = now): Change[] {
  const isBehind = at - now > clockToleranceMs
  const behind: Change[] = isBehind ? [{ put: clockBehindKey, value: '', numbered: first }] : []
  const values = messages.flatMap((message, nth) => {
    const { topic, retained } = message
    if (!retained) return []
    const { slot, time } = retained
    const numbered = { nth, at: 'value' as const }
    return [{ put: keyOf({ topic, slot }), value: '', numbered, order: orderAt(time, now) }]
  })
  return [...values, ...behind]
}

export function toValue(message: Message, position: number, at: number): RetainedValue | undefined {
  const { topic, payload, qos, queue, retained } = message
  if (!retained) return undefined
  const { slot, time, expires } = retained
  return { topic, slot, time, expires, qos, payload, queue, position, at }
}

/** The slot is written as JSON, so that slots that differ only in unpaired surrogates have different keys. */
export function keyOf({ topic, slot }: Pick<ValueKey, 'topic' | 'slot'>): string {
  return `${retainedPrefix}${topic}\n${JSON.stringify(slot)}`
}

export function parseKey(key: string): Pick<ValueKey, 'topic' | 'slot'> {
  const end = key.indexOf('\n')
  return { topic: key.slice(retainedPrefix.length, end), slot: JSON.parse(key.slice(end + 1)) }
}

/** Changes the retained values with each message that this node accepts. */
export function createRetaining(values: RetainedValues) {
  let lastMoment = 0

  return {
    changes,

    /**
     * From now on new subscribers get these messages of a commit, if `Order` lets them replace the previous values. The
     * returned functions end this: after a failure, new subscribers get the previous values again.
     */
    show(messages: readonly Message[], now: number, first: number): EndChange[] {
      const ends: EndChange[] = []
      for (const [nth, message] of messages.entries()) {
        const value = toValue(message, first + nth, now)
        if (!value) continue
        const { topic, slot, time } = value
        ends.push(values.begin({ topic, slot, value, order: orderAt(time, now) }))
      }
      return ends
    },

    /** Returns a moment: a number that is higher than all moments before, even if the clock is set back. */
    moment: nextMoment,

    /** Notes the moment at which this node sends the message live to an audience. */
    sent(topic: string, position: number, to: Audience): void {
      const moment = nextMoment()
      for (const value of values.of(topic)) {
        if (value.position !== position) continue
        if (to === 'pages') value.sentToPages = moment
        else value.sent = moment
      }
    },
  }

  function nextMoment(): number {
    return ++lastMoment
  }
}

/**
 * Notes a value that the store has now. If returning sessions get only the newest value of its topic (`keep` is
 * `latest`), the noted value becomes that newest value.
 */
function noteStored({ topic, qos, position, queue }: RetainedValue, returnable: Returnable): void {
  if (queue.keep === 'latest') returnable.setLatest({ topic, qos, position, expires: queue.expires })
}

/** Whether the value at a position is stored in the slot, or a commit under way may store that value. */
function mayHold(unsettled: Unsettled | undefined, position: number): boolean {
  if (!unsettled) return false
  const { stored, changes } = unsettled
  return (
    (isHeld(stored) && stored.position === position) ||
    changes.some(({ value }) => value?.position === position)
  )
}

function isHeld(value: HeldValue | ValueKey | undefined): value is HeldValue {
  return value !== undefined && 'payload' in value
}

/** Whether a time has passed. Undefined never passes. */
export function isPast(time: number | undefined, now: number): boolean {
  return time !== undefined && time <= now
}

/** The value that a slot has after a change. */
function leftBy(
  before: HeldValue | ValueKey | undefined,
  { value, order }: SlotChange,
): HeldValue | ValueKey | undefined {
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

/** The slots that show a value, by topic. */
function createSlots() {
  const byTopic = new Map<string, Map<string, HeldValue>>()
  const tree = createTopicTree()
  const expiring = new Set<string>()

  return {
    get: (topic: string, slot: string): HeldValue | undefined => byTopic.get(topic)?.get(slot),
    /** The values of a topic, in the order of positions. */
    of: (topic: string): Iterable<HeldValue> => byTopic.get(topic)?.values() ?? [],
    count: (topic: string): number => byTopic.get(topic)?.size ?? 0,
    topics: tree.matching,
    expiring: expiring as ReadonlySet<string>,

    put(value: HeldValue): void {
      const { topic, slot, position } = value
      if (value.expires !== undefined) expiring.add(topic)
      const slots = byTopic.get(topic)
      if (!slots) {
        byTopic.set(topic, new Map([[slot, value]]))
        tree.add(topic)
        return
      }
      slots.delete(slot)
      const last = [...slots.values()].at(-1)
      slots.set(slot, value)
      if (last && position < last.position) byTopic.set(topic, inOrderOfPosition(slots))
    },

    remove({ topic, slot }: HeldValue): void {
      const slots = byTopic.get(topic)
      slots?.delete(slot)
      if (slots?.size !== 0) return
      byTopic.delete(topic)
      expiring.delete(topic)
      tree.remove(topic)
    },
  }
}

/**
 * Sorts by position, because `newestOf` needs this order. Of two values with the same event time, the value at the
 * higher position counts.
 */
function inOrderOfPosition(slots: ReadonlyMap<string, HeldValue>): Map<string, HeldValue> {
  return new Map([...slots].sort(([, a], [, b]) => a.position - b.position))
}
