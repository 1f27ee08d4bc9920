import { createHash } from 'node:crypto'
import type { Calls } from '../store/nodes/calls.ts'
import type { Nodes } from '../store/nodes/nodes.ts'
import type { Store } from '../store/store.ts'

const prefix = 'work-lease/'

export type Leases = Awaited<ReturnType<typeof createLeases>>

/**
 * Which node works off which queue. All nodes compute the same answer from who is there; whoever has begun keeps
 * the queue until it has finished the item under way, or is gone. On a single node every queue is its own.
 */
export async function createLeases(parts: { store: Store; nodes: Nodes; calls: Calls }) {
  const { store, nodes, calls } = parts
  const holders = new Map<string, string>()
  let freed: (queue: string) => void = () => undefined
  if (nodes.isShared) {
    for await (const [key, value] of store.range(prefix)) holders.set(queueOf(key), value.toString())
  }
  store.watch?.(prefix, (change) => {
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
      const holder = holders.get(queue)
      if (holder === nodes.self) return true
      if (holder !== undefined && nodes.isLiving(holder)) {
        // It lets go by itself when it notices, or now.
        await calls.ask(holder, 'let-go-of-queue', queue)
        if (holders.get(queue) === holder && nodes.isLiving(holder)) return false
      }
      await store.commit([{ put: prefix + encodeURIComponent(queue), value: nodes.self }])
      holders.set(queue, nodes.self)
      return true
    },

    /** Lets go of a queue that is no longer its own. */
    release,

    /** Calls back when a queue of this node becomes free, or nodes have come or gone. */
    onFreed(listener: (queue: string) => void, changed: () => void): void {
      freed = listener
      nodes.onChange(changed)
      calls.serve('let-go-of-queue', (queue) => freed(String(queue)))
    },
  }

  async function release(queue: string): Promise<void> {
    if (holders.get(queue) !== nodes.self) return
    await store.commit([{ del: prefix + encodeURIComponent(queue) }])
    if (holders.get(queue) === nodes.self) holders.delete(queue)
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

function queueOf(key: string): string {
  return decodeURIComponent(key.slice(prefix.length))
}
