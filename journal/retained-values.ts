import type { Message } from '../event/message.ts'
import { keepsStored, type Order } from '../store/store.ts'
import type { Returnable } from './returnable.ts'

/** A value that a new subscriber gets. */
export interface RetainedValue {
  topic: string
  slot: string
  /** Event time, milliseconds since the epoch. */
  time: number
  expires?: number | undefined
  qos: 0 | 1 | 2
  payload: Buffer
  /** Where in the journal its message lies. */
  position: number
  /** The rule by which a session that was away gets the value. */
  queue: Message['queue']
  /** The `moment` when this node sent the value to sessions for which nothing is stored. Absent: not since start. */
  sent?: number
}

/** Identifies a value, without its payload. */
export type ValueKey = Pick<RetainedValue, 'topic' | 'slot' | 'time'>

export type RetainedValues = ReturnType<typeof createRetainedValues>

/** Most values on one topic: a publisher that invents ever new names must not fill the memory. */
const maxSlots = 100
/** Most bytes of all payloads on one topic; the latest value always stays. */
const maxSlotBytes = 512 * 1024

/** An event time further ahead of the clock than this does not keep out later arrivals (design.md §7), milliseconds. */
export const farFutureMs = 10 * 60 * 1000

/** What a commit under way does to a slot. */
export interface SlotChange {
  topic: string
  slot: string
  /** What commits it: the position of a message, or a removal. */
  by: unknown
  /** Undefined: the commit removes the value before. */
  value?: RetainedValue | undefined
  /** By this rule the store may keep the value before. Undefined: the value before always goes. */
  order?: Order | undefined
}

/** A slot that commits under way change. */
interface Unsettled {
  topic: string
  slot: string
  /** What the store has. */
  stored: Held | undefined
  /** In the order of their commits. */
  changes: SlotChange[]
}

/** A value in memory. */
interface Held extends RetainedValue {
  /** Set while commits under way change the slot. */
  unsettled?: Unsettled | undefined
}

/**
 * Holds the values in memory by topic and slot, within bounds. A slot shows what its commits under way will leave in
 * the store. If one of them fails, the slot shows at once what the others leave. `returnable` knows only what is stored.
 */
export function createRetainedValues(returnable: Returnable) {
  const tree = createTopicTree<Held>()
  /** Slots that show nothing because a commit under way removes their value. */
  const emptied: Unsettled[] = []
  /** Values that were pushed out of memory, but not out of the store yet. */
  const pushedOut: ValueKey[] = []

  return {
    get,
    /** The values of a topic, in the order of positions. */
    of,
    all: tree.values,
    topics: tree.topics,

    /** The store has this value in its slot. */
    put(value: RetainedValue): void {
      keep(value)
      noteStored(value)
    },

    /** The store has nothing in this slot. */
    remove(topic: string, slot: string): void {
      const value = get(topic, slot)
      if (!value) return
      tree.remove(value)
      returnable.removeLatest(topic, value.position)
    },

    /** A commit under way changes a slot. To be called in the order of the commits. */
    begin(change: SlotChange): void {
      const { topic, slot } = change
      const unsettled = unsettledAt(change) ?? { topic, slot, stored: get(topic, slot), changes: [] }
      unsettled.changes.push(change)
      show(unsettled)
    },

    /** The commit of a change has ended. If the change is not known, this does nothing. */
    settle(settled: Pick<SlotChange, 'topic' | 'slot' | 'by'>, isStored: boolean): void {
      const unsettled = unsettledAt(settled)
      const change = unsettled?.changes.find(({ by }) => by === settled.by)
      if (!unsettled || !change) return
      unsettled.changes.splice(unsettled.changes.indexOf(change), 1)
      const before = unsettled.stored
      if (isStored) unsettled.stored = leftBy(before, change)
      show(unsettled)
      const { stored } = unsettled
      if (stored && stored !== before) noteStored(stored)
      if (before && !stored) returnable.removeLatest(before.topic, before.position)
    },

    /** Whether the journal must keep the message at this position. */
    names(topic: string, position: number): boolean {
      const isNamedBy = (unsettled: Unsettled | undefined) =>
        unsettled?.stored?.position === position ||
        unsettled?.changes.some(({ value }) => value?.position === position)
      for (const value of of(topic)) {
        if (value.position === position || isNamedBy(value.unsettled)) return true
      }
      return emptied.some((each) => each.topic === topic && isNamedBy(each))
    },

    /** The stored values of a topic, without those that a commit under way removes. */
    *storedOf(topic: string): Generator<RetainedValue> {
      for (const value of of(topic)) {
        const stored = value.unsettled ? value.unsettled.stored : value
        if (stored) yield stored
      }
    },

    /** The values that were pushed out and that the store may still have. */
    pushedOut: (): readonly ValueKey[] => [...pushedOut],
    /** Forgets the first `count` values that were pushed out: the store no longer has them. */
    cleared(count: number): void {
      pushedOut.splice(0, count)
    },
  }

  function get(topic: string, slot: string): Held | undefined {
    return tree.at(topic)?.get(slot)
  }

  function of(topic: string): Iterable<Held> {
    return tree.at(topic)?.values() ?? []
  }

  function keep(value: Held): void {
    pushedOut.push(...pushOut(tree.put(value)))
  }

  /** From now on a session that was away gets the value. */
  function noteStored({ topic, qos, position, queue }: RetainedValue): void {
    if (queue.keep === 'latest') returnable.setLatest({ topic, qos, position, ...queue })
  }

  function unsettledAt({ topic, slot }: Pick<SlotChange, 'topic' | 'slot'>): Unsettled | undefined {
    const value = get(topic, slot)
    if (value) return value.unsettled
    return emptied.find((each) => each.topic === topic && each.slot === slot)
  }

  /** Shows what the changes of a slot leave. */
  function show(unsettled: Unsettled): void {
    const { topic, slot, stored, changes } = unsettled
    const before = get(topic, slot)
    const now: Held | undefined = changes.reduce(leftBy, stored)
    if (before) before.unsettled = undefined
    else if (emptied.includes(unsettled)) emptied.splice(emptied.indexOf(unsettled), 1)
    if (before && !now) tree.remove(before)
    if (now && now !== before) keep(now)
    if (changes.length === 0) return
    if (now) now.unsettled = unsettled
    else emptied.push(unsettled)
  }
}

/** Removes the oldest values of a topic until their number and their bytes are within bounds. Returns what it removed. */
function pushOut(slots: Map<string, RetainedValue>): ValueKey[] {
  const removed: ValueKey[] = []
  let bytes = 0
  for (const { payload } of slots.values()) bytes += payload.length
  for (const { topic, slot, time, payload } of slots.values()) {
    if (slots.size <= maxSlots && (bytes <= maxSlotBytes || slots.size === 1)) break
    bytes -= payload.length
    slots.delete(slot)
    removed.push({ topic, slot, time })
  }
  return removed
}

/** The value that a change leaves in its slot. */
function leftBy(before: RetainedValue | undefined, { value, order }: SlotChange): RetainedValue | undefined {
  return before && order && keepsStored(before.time, order) ? before : value
}

/** Returns the newest value that is still valid. `values` are in the order of their positions. */
export function newestOf(values: Iterable<RetainedValue>, now: number): RetainedValue | undefined {
  let newest: RetainedValue | undefined
  for (const value of values) {
    const valid = value.expires === undefined || value.expires > now
    if (valid && !(newest && keepsStored(newest.time, orderAt(value.time, now)))) newest = value
  }
  return newest
}

export function orderAt(time: number, now: number): Order {
  return { time, horizon: now + farFutureMs }
}

/** A level of the topics that hold values. */
interface Node<Value> {
  children: Map<string, Node<Value>>
  /** In the order of positions, which decides between equal times. */
  slots: Map<string, Value>
  topic: string
}

/** Values by topic and slot, found by topic or by a filter. */
function createTopicTree<Value extends { topic: string; slot: string; position: number }>() {
  const root = createNode<Value>()
  /** The nodes that hold values. */
  const byTopic = new Map<string, Node<Value>>()

  return {
    /** The values of a topic by slot, in the order of positions. */
    at: (topic: string): ReadonlyMap<string, Value> | undefined => byTopic.get(topic)?.slots,

    values: (): Iterable<Value> => values(root),

    /** The topics that hold a value and match `filter`. */
    topics(filter: string): string[] {
      const topics: string[] = []
      collect(root, filter.split('/'), 0, topics)
      return topics
    },

    /** Adds a value. Returns all values of its topic. */
    put(value: Value): Map<string, Value> {
      const node = byTopic.get(value.topic) ?? addNode(value.topic)
      node.slots.delete(value.slot)
      const last = [...node.slots.values()].at(-1)
      node.slots.set(value.slot, value)
      if (last && value.position < last.position) node.slots = inOrderOfPosition(node.slots)
      return node.slots
    },

    remove({ topic, slot }: Value): void {
      const path: [Node<Value>, string][] = []
      let node: Node<Value> | undefined = root
      for (const level of topic.split('/')) {
        if (!node) return
        path.push([node, level])
        node = node.children.get(level)
      }
      node?.slots.delete(slot)
      if (node?.slots.size === 0) byTopic.delete(topic)
      for (const [parent, level] of path.reverse()) {
        const child = parent.children.get(level)
        if (child && child.slots.size === 0 && child.children.size === 0) parent.children.delete(level)
      }
    },
  }

  function addNode(topic: string): Node<Value> {
    let node = root
    for (const level of topic.split('/')) {
      let child = node.children.get(level)
      if (!child) {
        child = createNode()
        node.children.set(level, child)
      }
      node = child
    }
    node.topic = topic
    byTopic.set(topic, node)
    return node
  }
}

function createNode<Value>(): Node<Value> {
  return { children: new Map(), slots: new Map(), topic: '' }
}

function inOrderOfPosition<Value extends { position: number }>(
  slots: ReadonlyMap<string, Value>,
): Map<string, Value> {
  return new Map([...slots].sort(([, a], [, b]) => a.position - b.position))
}

/** All values at a node and below. */
function* values<Value>(node: Node<Value>): Generator<Value> {
  yield* node.slots.values()
  for (const child of node.children.values()) yield* values(child)
}

/** Adds to `topics` those that hold a value and match a filter, from the level `depth` of the filter on. */
function collect<Value>(node: Node<Value>, levels: string[], depth: number, topics: string[]): void {
  const level = levels[depth]
  if (level === '#') {
    for (const below of nodesBelow(node, depth)) if (below.slots.size > 0) topics.push(below.topic)
  } else if (level === '+') {
    for (const [name, child] of node.children) {
      if (depth > 0 || !name.startsWith('$')) collect(child, levels, depth + 1, topics)
    }
  } else if (level !== undefined) {
    const child = node.children.get(level)
    if (child) collect(child, levels, depth + 1, topics)
  } else if (node.slots.size > 0) {
    topics.push(node.topic)
  }
}

/** The node itself (`a/#` matches `a`, §4.7.1.2) and all nodes below; `#` alone leaves out `$…` [MQTT-4.7.2-1]. */
function* nodesBelow<Value>(node: Node<Value>, depth: number): Generator<Node<Value>> {
  yield node
  for (const [name, child] of node.children) {
    if (depth > 0 || !name.startsWith('$')) yield* nodesBelow(child, depth + 1)
  }
}
