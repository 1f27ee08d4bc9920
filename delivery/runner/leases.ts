import { createHash } from 'node:crypto'
import { namedKeys, storeKeys } from '../../store/keys.ts'
import { createLocks } from '../../store/lock.ts'
import type { Calls } from '../../store/nodes/calls.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import { ConditionFailed, type StateChange, type Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'

const { prefix, keyOf, nameOf } = namedKeys(storeKeys.workLease)

/** Nodes tell each other on this channel which queues they can work off. */
const ableChannel = 'queue-able'

interface Ability {
  queue: string
  node: string
  isAble: boolean
}

export type Leases = Awaited<ReturnType<typeof createLeases>>

/**
 * Decides which node works off which queue (`isOwn`). While nodes join or leave, the lease of a queue lets only one
 * node deliver: docs/decisions, "A queue of webhooks has one node". A single node needs no leases.
 */
export async function createLeases(parts: { store: Store; nodes: Nodes; calls: Calls; log: Log }) {
  const { store, nodes, calls, log } = parts
  const holders = new Map<string, string>()
  /** One change of a lease at a time: a release under way must not end what another lane has just begun. */
  const changes = createLocks()
  /** Queues of which a commit had no answer: only the store knows who holds their leases. */
  const unanswered = new Set<string>()
  /** By queue the nodes that cannot work it off, because its driver does not start there. */
  const unable = new Map<string, Set<string>>()
  const listeners: ((queue: string) => void)[] = []
  const freed = (queue: string) => {
    for (const listener of listeners) listener(queue)
  }
  if (nodes.isShared) {
    for await (const [key, value] of store.range(prefix)) holders.set(nameOf(key), value.toString())
  }
  store.onOthers(prefix, (key, holder) => {
    if (holder) return void holders.set(nameOf(key), holder.toString())
    holders.delete(nameOf(key))
    freed(nameOf(key))
  })
  store.onTold(ableChannel, (value) => {
    const { queue, node, isAble }: Ability = JSON.parse(value.toString())
    note({ queue, node, isAble })
    freed(queue)
  })

  calls.serve('let-go-of-queue', (queue) => freed(String(queue)))

  return {
    isOwn,

    /** The same where nodes of which `lacks` is true do not know the queue. */
    isOwnWithout,

    /** Declares whether this node can work a queue off. While it cannot, another node does that can. */
    declare(queue: string, isAble: boolean): void {
      const isNews = isAble === (unable.get(queue)?.has(nodes.self) ?? false)
      note({ queue, node: nodes.self, isAble })
      // A node that cannot repeats it at each start of the driver: the others may not have heard of it.
      if (isNews || !isAble) tell({ queue, node: nodes.self, isAble })
    },

    /**
     * Takes the lease of a queue for which `isOwn` is true. False: another node holds the lease, or this node is not in
     * touch with the others.
     */
    take: (queue: string): Promise<boolean> =>
      nodes.isShared ? changes.hold(queue, () => take(queue)) : Promise.resolve(true),

    /** Whether this node holds the lease. False also while others may have taken the lease, and this node cannot know. */
    holds: (queue: string): boolean =>
      !nodes.isShared || (holders.get(queue) === nodes.self && nodes.isInTouch()),

    /** Calls back when this node may no longer deliver, because it has lost touch with the others. */
    onLostTouch: (listener: () => void): void =>
      nodes.onTouch((isInTouch) => {
        if (!isInTouch) listener()
      }),

    /** Releases the lease of a queue that this node no longer works off. */
    release: (queue: string): Promise<void> => changes.hold(queue, () => release(queue)),

    /**
     * Removes leases that nodes left behind which are gone, of queues that nobody works off any more: `isUnused`. Of
     * others, the next node takes them over.
     */
    async removeLeft(isUnused: (queue: string) => boolean): Promise<void> {
      if (!nodes.isShared || !nodes.isLeader()) return
      for (const [queue, holder] of [...holders]) {
        if (nodes.isLiving(holder) || !isUnused(queue)) continue
        await changes.hold(queue, async () => {
          if (holders.get(queue) !== holder) return
          if (await tryCommit(queue, { del: keyOf(queue), when: { value: holder } })) holders.delete(queue)
        })
        freed(queue)
      }
    },

    /** Reads from the store which node holds the lease of a queue. */
    async refresh(queue: string): Promise<void> {
      if (nodes.isShared) await changes.hold(queue, () => refresh(queue))
    },

    /**
     * Calls `listener` when another node releases a lease, or asks this node for one. Calls `changed` when nodes join
     * or leave, and when this node is in touch with them again.
     */
    onFreed(listener: (queue: string) => void, changed: () => void): void {
      listeners.push(listener)
      nodes.onTouch((isInTouch) => {
        if (isInTouch) changed()
      })
      nodes.onChange(() => {
        for (const queue of unable.keys()) forgetGone(queue)
        // Nodes that have joined do not know it.
        for (const [queue, those] of unable)
          if (those.has(nodes.self)) tell({ queue, node: nodes.self, isAble: false })
        changed()
      })
    },
  }

  function note({ queue, node, isAble }: Ability): void {
    const those = unable.get(queue) ?? new Set()
    if (isAble) those.delete(node)
    else those.add(node)
    unable.set(queue, those)
    forgetGone(queue)
  }

  function forgetGone(queue: string): void {
    const left = [...(unable.get(queue) ?? [])].filter(nodes.isLiving)
    if (left.length > 0) unable.set(queue, new Set(left))
    else unable.delete(queue)
  }

  function tell(ability: Ability): void {
    if (!nodes.isShared) return
    store.commit([{ tell: ableChannel, value: JSON.stringify(ability) }]).catch((err: unknown) => {
      log.warn({ err, queue: ability.queue }, 'the other nodes could not be told who can work a queue off')
    })
  }

  function isHeldElsewhere(holder: string | undefined): holder is string {
    return holder !== undefined && holder !== nodes.self && nodes.isLiving(holder)
  }

  async function take(queue: string): Promise<boolean> {
    if (!nodes.isInTouch()) return false
    if (unanswered.has(queue)) await refresh(queue)
    const before = holders.get(queue)
    // Ask the holder for the lease. A holder that is not asked releases the lease later.
    if (isHeldElsewhere(before)) await calls.ask(before, 'let-go-of-queue', queue)
    const holder = holders.get(queue)
    if (holder === nodes.self) return true
    if (isHeldElsewhere(holder)) return false
    const when = holder === undefined ? 'absent' : { value: holder }
    const isTaken = await tryCommit(queue, { put: keyOf(queue), value: nodes.self, when })
    if (isTaken) holders.set(queue, nodes.self)
    return isTaken
  }

  async function release(queue: string): Promise<void> {
    if (unanswered.has(queue)) await refresh(queue)
    if (holders.get(queue) !== nodes.self) return
    // Another node may take it before this one hears the answer.
    holders.delete(queue)
    await tryCommit(queue, { del: keyOf(queue), when: { value: nodes.self } })
  }

  async function refresh(queue: string): Promise<void> {
    const holder = await store.get(keyOf(queue))
    if (holder) holders.set(queue, holder.toString())
    else holders.delete(queue)
    unanswered.delete(queue)
  }

  /** Commits a change of a lease. False: another node was first, and its change has arrived. */
  async function tryCommit(queue: string, change: StateChange): Promise<boolean> {
    try {
      await store.commit([change])
      return true
    } catch (error) {
      if (error instanceof ConditionFailed) return false
      unanswered.add(queue)
      throw error
    }
  }

  /** Whether this node is to work off a queue. With rendezvous hashing, few queues move when a node joins or leaves. */
  function isOwn(queue: string): boolean {
    return isOwnWithout(queue, () => false)
  }

  function isOwnWithout(queue: string, lacks: (node: string) => boolean): boolean {
    if (!nodes.isShared) return true
    const those = unable.get(queue)
    const able = nodes.living().filter((node) => !those?.has(node) && !lacks(node))
    const candidates = able.length > 0 ? able : nodes.living()
    const [first] = candidates.toSorted((a, b) => (weight(a, queue) < weight(b, queue) ? 1 : -1))
    return first === nodes.self
  }
}

function weight(node: string, queue: string): string {
  return createHash('sha1').update(`${node} ${queue}`).digest('hex')
}
