/** Holds values by topic and slot (`retained.ts`). Finds the values of a topic, and the topics that match a filter. */
export function createTopicTree<Value extends { topic: string; slot: string; position: number }>() {
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

/** A node of the tree: one level of topics that hold values. */
interface Node<Value> {
  children: Map<string, Node<Value>>
  /**
   * The values of the topic by slot, in the order of their positions. The order matters: if two values have the same
   * event time, the value at the higher position counts.
   */
  slots: Map<string, Value>
  topic: string
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

/**
 * Adds to `topics` the topics at `node` and below that hold a value and match a filter. `levels`: the levels of the
 * filter. The levels before `depth` match already.
 */
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

/**
 * Yields the node itself (`a/#` matches `a`, §4.7.1.2) and all nodes below. A filter `#` leaves out topics that begin
 * with `$` [MQTT-4.7.2-1].
 */
function* nodesBelow<Value>(node: Node<Value>, depth: number): Generator<Node<Value>> {
  yield node
  for (const [name, child] of node.children) {
    if (depth > 0 || !name.startsWith('$')) yield* nodesBelow(child, depth + 1)
  }
}
