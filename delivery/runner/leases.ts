import { createHash } from 'node:crypto'
import { storeKeys } from '../../store/keys.ts'
import type { Calls } from '../../store/nodes/calls.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import { ConditionFailed, type StateChange, type Store } from '../../store/store.ts'

const { prefix } = storeKeys.workLease

export type Leases = Awaited<ReturnType<typeof createLeases>>

/**
 * Decides which node works off which queue (`isOwn`). While nodes join or leave, the lease of a queue lets only one
 * node deliver: docs/decisions, "A queue of webhooks has one node". A single node needs no leases.
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

    /** Takes the lease of a queue for which `isOwn` is true. False: another node holds the lease. */
    async take(queue: string): Promise<boolean> {
      if (!nodes.isShared) return true
      const before = holders.get(queue)
      // Ask the holder for the lease. A holder that is not asked releases the lease later.
      if (isHeldElsewhere(before)) await calls.ask(before, 'let-go-of-queue', queue)
      const holder = holders.get(queue)
      if (holder === nodes.self) return true
      if (isHeldElsewhere(holder)) return false
      const isTaken = await tryCommit({
        put: keyOfQueue(queue),
        value: nodes.self,
        when: holder === undefined ? 'absent' : { value: holder },
      })
      if (isTaken) holders.set(queue, nodes.self)
      return isTaken
    },

    /** Whether this node holds the lease, by what the node has heard so far. */
    holds: (queue: string): boolean => !nodes.isShared || holders.get(queue) === nodes.self,

    /** Releases the lease of a queue that this node no longer works off. */
    release,

    /** Reads from the store which node holds the lease of a queue. */
    async refresh(queue: string): Promise<void> {
      if (!nodes.isShared) return
      const holder = await store.get(keyOfQueue(queue))
      if (holder) holders.set(queue, holder.toString())
      else holders.delete(queue)
    },

    /**
     * Calls `listener` when another node releases a lease, or asks this node for one. Calls `changed` when nodes join
     * or leave.
     */
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
    const isReleased = await tryCommit({ del: keyOfQueue(queue), when: { value: nodes.self } })
    if (isReleased && holders.get(queue) === nodes.self) holders.delete(queue)
  }

  /** Commits a change of a lease. False: another node was first, and its change has arrived. */
  async function tryCommit(change: StateChange): Promise<boolean> {
    try {
      await store.commit([change])
      return true
    } catch (error) {
      if (error instanceof ConditionFailed) return false
      throw error
    }
  }

  /** Whether this node is to work off a queue. With rendezvous hashing, few queues move when a node joins or leaves. */
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
