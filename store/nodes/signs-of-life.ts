import type { Log } from '../../telemetry/log.ts'
import { Fenced } from '../store.ts'
import type { FollowedStore } from './followed-store.ts'
import type { Members } from './members.ts'
import type { createOwnSlot } from './own-slot.ts'

/** Time between two signs of life, milliseconds. */
const usualIntervalMs = 1_000
/**
 * Maximum number of own signs that this node counts since another node's last sign. With one more, the other node is
 * gone. The limit is not a time. Otherwise an unreachable store or a wrong clock would make nodes look dead.
 */
const patience = 5
/**
 * This node is in touch while its newest answered sign was given less than so many intervals ago. That is well below
 * `patience`: a node that is in touch has not been removed.
 */
const inTouchIntervals = 3
/**
 * Maximum number of this node's signs that have no answer yet. The limit is high: a node that reads the log slowly gets
 * its answers late. Such a node must still go on giving signs.
 */
const maxUnderway = 30

const channel = 'alive'

/** Gives signs of life of this node, and removes the members that give none. */
export function createSignsOfLife(parts: {
  store: FollowedStore
  members: Members
  self: string
  own: ReturnType<typeof createOwnSlot>
  removed: (nodes: readonly string[]) => void
  /** Called when this node has lost touch with the others, and when it has touch again. */
  touched: (isInTouch: boolean) => void
  log: Log
  intervalMs: number | undefined
}) {
  const { store, members, self, own, removed, touched, log, intervalMs = usualIntervalMs } = parts
  /** How many signs of this node have counted since another node's last sign, by the id of that other node. */
  const missed = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  /** How many signs of this node the store has not answered yet. */
  let underway = 0
  let hasCounted = false
  let isRemoving = false
  /** When the newest sign was given that has an answer, by `performance.now()`. */
  let answered = -Infinity
  let wasInTouch = true
  store.onTold(channel, (node) => missed.set(node.toString(), 0))

  return {
    start(): void {
      answered = performance.now()
      timer = setInterval(() => {
        hasCounted = false
        noteTouch()
        void beat()
      }, intervalMs)
    },
    stop: (): void => clearInterval(timer),
    isInTouch,
    /** Notes that a node has joined, which counts as a sign. */
    joined: (node: string): void => void missed.set(node, 0),
    gone: (node: string): void => void missed.delete(node),
  }

  function isInTouch(): boolean {
    return performance.now() - answered < inTouchIntervals * intervalMs
  }

  function noteTouch(): void {
    if (isInTouch() === wasInTouch) return
    wasInTouch = !wasInTouch
    touched(wasInTouch)
  }

  /** Gives a sign, even while earlier signs have no answer: on a slow network, a node that waited would look dead. */
  async function beat(): Promise<void> {
    if (underway === maxUnderway) return
    underway++
    const given = performance.now()
    try {
      if (own.get() === undefined) await own.comeBack()
      await store.commit([{ tell: channel, value: self }])
      answered = Math.max(answered, given)
      noteTouch()
      // At most one sign counts per interval. If several answers arrive at once, they are late, and the signs of other
      // nodes may be late too.
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
      // Calls `removed` only after the loop. Before the loop ends, a silent node may still be the leader. Nobody would
      // then clean up after the removed nodes.
      if (gone.length > 0) removed(gone)
    }
  }
}
