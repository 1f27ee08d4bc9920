/** A level of the topics that hold retained values. */
export interface Node<Value> {
  children: Map<string, Node<Value>>
  /** In the order of positions, which decides between equal times. */
  slots: Map<string, Value>
  topic: string
}

export function createNode<Value>(): Node<Value> {
  return { children: new Map(), slots: new Map(), topic: '' }
}

/** All values at a node and below. */
export function* values<Value>(node: Node<Value>): Generator<Value> {
  yield* node.slots.values()
  for (const child of node.children.values()) yield* values(child)
}

/** Adds the topics that hold a value and match a filter, from the level `depth` of the filter on. */
export function collect<Value>(node: Node<Value>, levels: string[], depth: number, topics: string[]): void {
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

/** The node itself (`a/#` matches `a`, §4.7.1.2) and everything below; `#` alone spares `$…` [MQTT-4.7.2-1]. */
function* nodesBelow<Value>(node: Node<Value>, depth: number): Generator<Node<Value>> {
  yield node
  for (const [name, child] of node.children) {
    if (depth > 0 || !name.startsWith('$')) yield* nodesBelow(child, depth + 1)
  }
}
