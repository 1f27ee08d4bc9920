import type { Log } from '../../telemetry/log.ts'
import { Fenced } from '../store.ts'
import type { FollowedStore } from './followed-store.ts'
import type { Members } from './members.ts'
import type { createOwnSlot } from './own-slot.ts'

/** Time between two signs of life, milliseconds. */
const usualIntervalMs = 1_000
/**
 * Most signs of this node that may arrive after the last sign of another node. With one more, the other node is gone.
 * Signs are counted, not timed, so that an unreachable store or a wrong clock makes no node look dead.
 */
const patience = 5
/** Most signs of this node without an answer. While the store is out of reach, they must not pile up. */
const maxUnderway = 5

const channel = 'alive'

/** Gives signs of life of this node, and removes the members that give none. */
export function createSignsOfLife(parts: {
  store: FollowedStore
  members: Members
  self: string
  own: ReturnType<typeof createOwnSlot>
  /** Called with the nodes that were silent, and are members no longer. */
  buried: (nodes: readonly string[]) => void
  log: Log
  intervalMs: number | undefined
}) {
  const { store, members, self, own, buried, log, intervalMs = usualIntervalMs } = parts
  /** For each other node: signs of this node that arrived since the last sign of the other. */
  const missed = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  /** Signs of this node that are not answered yet. */
  let underway = 0
  let hasCounted = false
  let isBurying = false
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
   * Gives a sign, also while earlier ones are not answered: on a slow network each group of commits must carry one.
   */
  async function beat(): Promise<void> {
    if (underway === maxUnderway) return
    underway++
    try {
      if (own.get() === undefined) await own.comeBack()
      await store.commit([{ tell: channel, value: self }])
      // Signs that were answered together count once, because those of the others may be late for the same reason.
      if (hasCounted || isBurying) return
      hasCounted = true
      for (const [, { node }] of members.all()) {
        if (node !== self) missed.set(node, (missed.get(node) ?? 0) + 1)
      }
      await bury()
    } catch (err) {
      if (err instanceof Fenced) await own.comeBack()
      else log.debug({ err }, 'sign of life not given')
    } finally {
      underway--
    }
  }

  async function bury(): Promise<void> {
    const isSilent = (node: string) => node !== self && (missed.get(node) ?? 0) > patience
    if (!own.isFirst((node) => !isSilent(node))) return
    const silent = members.all().filter(([, { node }]) => isSilent(node))
    isBurying = true
    try {
      for (const [slot, member] of silent) await members.remove(slot, member)
    } finally {
      isBurying = false
    }
    // Reported only when all are removed: one of them may have had the lowest slot, which makes a node the leader.
    if (silent.length > 0) buried(silent.map(([, { node }]) => node))
  }
}
