import { createHash } from 'node:crypto'
import type { Calls } from '../../store/nodes/calls.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import { ConditionFailed, type StateChange, type Store } from '../../store/store.ts'

const prefix = 'work-lease/'

export type Leases = Awaited<ReturnType<typeof createLeases>>

/**
 * Which node works off which queue. All nodes compute it alike, from the nodes that are there. A node that has begun
 * with a queue keeps it until the item under way is finished, or the node is gone. On a single node every queue is its
 * own.
 */
export async function createLeases(parts: { store: Store; nodes: Nodes; calls: Calls }) {
  const { store, nodes, calls } = parts
  const holders = new Map<string, string>()
  let freed: (queue: string) => void = () => undefined
  if (nodes.isShared) {
    for await (const [key, value] of store.range(prefix)) holders.set(queueOf(key), value.toString())
  }
  store.onOthers(prefix, (change) => {
    if ('put' in change) holders.set(queueOf(change.put), change.value.toString())
    else if ('del' in change) {
      holders.delete(queueOf(change.del))
      freed(queueOf(change.del))
    }
  })

  return {
    isOwn,

    /** Whether this node may take the next item of a queue of its own; it holds the queue from then on. */
    async take(queue: string): Promise<boolean> {
      if (!nodes.isShared) return true
      const before = holders.get(queue)
      // The holder would let go by itself when it notices that the queue is not its own: to ask is faster.
      if (isHeldElsewhere(before)) await calls.ask(before, 'let-go-of-queue', queue)
      const holder = holders.get(queue)
      if (holder === nodes.self) return true
      if (isHeldElsewhere(holder)) return false
      const isTaken = await isDone({
        ...{ put: keyOfQueue(queue), value: nodes.self },
        when: holder === undefined ? 'absent' : { value: holder },
      })
      if (isTaken) holders.set(queue, nodes.self)
      return isTaken
    },

    /** Lets go of a queue that is no longer its own. */
    release,

    /** Asks the store who has the queue. */
    async refresh(queue: string): Promise<void> {
      if (!nodes.isShared) return
      const holder = await store.get(keyOfQueue(queue))
      if (holder) holders.set(queue, holder.toString())
      else holders.delete(queue)
    },

    /** Calls back when a queue of this node becomes free, or nodes have come or gone. */
    onFreed(listener: (queue: string) => void, changed: () => void): void {
      freed = listener
      nodes.onChange(changed)
      calls.serve('let-go-of-queue', (queue) => freed(String(queue)))
    },
  }

  function isHeldElsewhere(holder: string | undefined): holder is string {
    return holder !== undefined && holder !== nodes.self && nodes.isLiving(holder)
  }

  async function release(queue: string): Promise<void> {
    if (holders.get(queue) !== nodes.self) return
    const isReleased = await isDone({ del: keyOfQueue(queue), when: { value: nodes.self } })
    if (isReleased && holders.get(queue) === nodes.self) holders.delete(queue)
  }

  /** False when another node was first. This one has heard of it by then. */
  async function isDone(change: StateChange): Promise<boolean> {
    try {
      await store.commit([change])
      return true
    } catch (error) {
      if (error instanceof ConditionFailed) return false
      throw error
    }
  }

  /** Rendezvous hashing: when a node comes or goes, only its share moves. */
  function isOwn(queue: string): boolean {
    if (!nodes.isShared) return true
    const [first] = nodes.living().toSorted((a, b) => (weight(a, queue) < weight(b, queue) ? 1 : -1))
    return first === nodes.self
  }
}

function weight(node: string, queue: string): string {
  return createHash('sha1').update(`${node} ${queue}`).digest('hex')
}

function keyOfQueue(queue: string): string {
  return prefix + encodeURIComponent(queue)
}

function queueOf(key: string): string {
  return decodeURIComponent(key.slice(prefix.length))
}
