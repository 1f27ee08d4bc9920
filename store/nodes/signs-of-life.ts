import type { Log } from '../../telemetry/log.ts'
import { Fenced } from '../store.ts'
import type { FollowedStore } from './followed-store.ts'
import type { Members } from './members.ts'
import type { createOwnSlot } from './own-slot.ts'

/** Time between two signs of life, milliseconds. */
const usualIntervalMs = 1_000
/**
 * Another node is gone if it gives no sign while the store takes more than this many signs of this node. This node
 * counts signs instead of seconds, because an unreachable store or a wrong clock must not make a node look dead.
 */
const patience = 5
/**
 * Maximum number of signs of this node that wait for an answer, so that they do not pile up. It is high: if a
 * node reads the log slowly, it learns late that the store has taken its signs, but must go on giving signs.
 */
const maxUnderway = 30

const channel = 'alive'

/** Gives signs of life of this node (a `tell` each), and removes the members that give none. */
export function createSignsOfLife(parts: {
  store: FollowedStore
  members: Members
  self: string
  own: ReturnType<typeof createOwnSlot>
  /** Called with the nodes that this node has removed from the members because they were silent. */
  removed: (nodes: readonly string[]) => void
  log: Log
  intervalMs: number | undefined
}) {
  const { store, members, self, own, removed, log, intervalMs = usualIntervalMs } = parts
  /** For each other node: how many signs of this node the store has taken since the last sign of that node. */
  const missed = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  /** How many signs of this node the store has not answered yet. */
  let underway = 0
  let hasCounted = false
  let isRemoving = false
  store.onOthers(channel, (change) => {
    if ('tell' in change) missed.set(change.value.toString(), 0)
  })

  return {
    start(): void {
      timer = setInterval(() => {
        hasCounted = false
        void beat()
      }, intervalMs)
    },
    stop: (): void => clearInterval(timer),
    /** Notes that a node has joined, which counts as a sign. */
    joined: (node: string): void => void missed.set(node, 0),
    gone: (node: string): void => void missed.delete(node),
  }

  /**
   * Gives a sign without waiting for the answers to earlier signs. On a slow network, a node that waited would send
   * groups of commits without a sign.
   */
  async function beat(): Promise<void> {
    if (underway === maxUnderway) return
    underway++
    try {
      if (own.get() === undefined) await own.comeBack()
      await store.commit([{ tell: channel, value: self }])
      // If the store answers several signs at once, they count as one: what delayed the answers may also have delayed
      // the signs of other nodes.
      if (hasCounted || isRemoving) return
      hasCounted = true
      for (const [, { node }] of members.all()) {
        if (node !== self) missed.set(node, (missed.get(node) ?? 0) + 1)
      }
      await removeSilent()
    } catch (err) {
      if (err instanceof Fenced) await own.comeBack()
      else log.debug({ err }, 'sign of life not given')
    } finally {
      underway--
    }
  }

  async function removeSilent(): Promise<void> {
    const isSilent = (node: string) => node !== self && (missed.get(node) ?? 0) > patience
    if (!own.isFirst((node) => !isSilent(node))) return
    const gone: string[] = []
    isRemoving = true
    try {
      for (const [slot, member] of members.all()) {
        // This member may have given a sign while this node removed another member.
        if (!isSilent(member.node)) continue
        await members.remove(slot, member)
        gone.push(member.node)
      }
    } finally {
      isRemoving = false
      // Calls `removed` only after the loop, and even if a removal has failed. During the loop, a silent node may still
      // have the lowest slot. It would count as the leader, and nobody would clean up after the removed nodes.
      if (gone.length > 0) removed(gone)
    }
  }
}
