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

/** The values that one commit hides. */
interface Hidden {
  by: unknown
  values: readonly RetainedValue[]
}

/** Holds the values in memory by topic and slot, within bounds, and keeps `returnable` up to date. */
export function createRetainedValues(returnable: Returnable) {
  const tree = createTopicTree<RetainedValue>()
  /** Values that a commit under way hides. If the commit fails, they are shown again. */
  const hidden: Hidden[] = []
  /** Values that were pushed out of memory, but not out of the store yet. */
  let pushedOut: ValueKey[] = []

  return {
    get: (topic: string, slot: string): RetainedValue | undefined => tree.at(topic)?.get(slot),
    /** The values of a topic, in the order of positions. */
    of,
    all: tree.values,
    topics: tree.topics,
    /** Notes that a commit under way hides these values. `by` identifies the commit. */
    hide: (by: unknown, values: readonly RetainedValue[]): void => void hidden.push({ by, values }),
    /** Notes that the commit has ended. */
    noLongerHides,

    /** Notes that the commit of a value has failed. If a later commit hides that value, it now hides what the value hid. */
    isNotStored(value: RetainedValue): void {
      const own = noLongerHides(value.position)
      const later = hidden.find(({ values }) => values.includes(value))
      if (later && own) later.values = later.values.flatMap((each) => (each === value ? own.values : [each]))
    },

    keep: (value: RetainedValue): void => pushOut(tree.put(value)),

    /** The value is stored: from now on a session that was away gets it. */
    isStored({ topic, qos, position, queue }: RetainedValue): void {
      if (queue.keep === 'latest') returnable.setLatest({ topic, qos, position, ...queue })
    },

    forget(value: RetainedValue): void {
      tree.remove(value)
      returnable.removeLatest(value.topic, value.position)
    },

    /** Whether the journal must keep the message at this position. */
    names(topic: string, position: number): boolean {
      const isNamed = (value: RetainedValue) => value.topic === topic && value.position === position
      return [...of(topic)].some(isNamed) || hidden.some(({ values }) => values.some(isNamed))
    },

    /** The values that were pushed out and that the store may still have. */
    pushedOut: (): readonly ValueKey[] => [...pushedOut],
    /** Forgets the first `count` values that were pushed out: the store no longer has them. */
    cleared(count: number): void {
      pushedOut = pushedOut.slice(count)
    },
  }

  function noLongerHides(by: unknown): Hidden | undefined {
    const index = hidden.findIndex((each) => each.by === by)
    return index < 0 ? undefined : hidden.splice(index, 1)[0]
  }

  function of(topic: string): Iterable<RetainedValue> {
    return tree.at(topic)?.values() ?? []
  }

  /** Removes the oldest values of a topic until their number and their bytes are within bounds. */
  function pushOut(slots: Map<string, RetainedValue>): void {
    let bytes = 0
    for (const { payload } of slots.values()) bytes += payload.length
    for (const oldest of slots.values()) {
      if (slots.size <= maxSlots && (bytes <= maxSlotBytes || slots.size === 1)) return
      bytes -= oldest.payload.length
      slots.delete(oldest.slot)
      pushedOut.push({ topic: oldest.topic, slot: oldest.slot, time: oldest.time })
    }
  }
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
