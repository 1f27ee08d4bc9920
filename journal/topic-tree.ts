/** A set of topics. Finds those that match a filter, without a look at each of them. */
export function createTopicTree() {
  const root = createNode()

  return {
    /** The topics of the set that match `filter`. */
    matching(filter: string): string[] {
      const topics: string[] = []
      collect(root, filter.split('/'), 0, topics)
      return topics
    },

    add(topic: string): void {
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
    },

    remove(topic: string): void {
      const path: [TopicNode, string][] = []
      let node: TopicNode | undefined = root
      for (const level of topic.split('/')) {
        if (!node) return
        path.push([node, level])
        node = node.children.get(level)
      }
      if (node) node.topic = undefined
      for (const [parent, level] of path.reverse()) {
        const child = parent.children.get(level)
        if (child && child.topic === undefined && child.children.size === 0) parent.children.delete(level)
      }
    },
  }
}

/** A node of the tree: one level of topics. */
interface TopicNode {
  children: Map<string, TopicNode>
  /** Undefined: no topic of the set ends at this node. */
  topic: string | undefined
}

function createNode(): TopicNode {
  return { children: new Map(), topic: undefined }
}

/**
 * Adds to `topics` the topics at `node` and below that match the filter `levels`. The levels before `depth` match
 * already.
 */
function collect(node: TopicNode, levels: string[], depth: number, topics: string[]): void {
  const level = levels[depth]
  if (level === '#') {
    addBelow(node, depth, topics)
  } else if (level === '+') {
    for (const [name, child] of node.children) {
      if (depth > 0 || !name.startsWith('$')) collect(child, levels, depth + 1, topics)
    }
  } else if (level !== undefined) {
    const child = node.children.get(level)
    if (child) collect(child, levels, depth + 1, topics)
  } else if (node.topic !== undefined) {
    topics.push(node.topic)
  }
}

/**
 * Adds the topics at the node itself (`a/#` matches `a`, §4.7.1.2) and below. A filter `#` leaves out topics that begin
 * with `$` [MQTT-4.7.2-1].
 */
function addBelow(node: TopicNode, depth: number, topics: string[]): void {
  if (node.topic !== undefined) topics.push(node.topic)
  for (const [name, child] of node.children) {
    if (depth > 0 || !name.startsWith('$')) addBelow(child, depth + 1, topics)
  }
}
