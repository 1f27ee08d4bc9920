import type { Nodes } from '../store/nodes/nodes.ts'
import type { StoreState } from '../store/open.ts'
import type { Log } from '../telemetry/log.ts'

/** Time between two looks, milliseconds. */
const lookMs = 1_000
/**
 * A state counts when so many looks in a row have found it. Nodes may notice seconds apart that Redis is away from all of
 * them, and their answer of `/health` may be three seconds old.
 */
const looksInARow = 6
/** So many other nodes are asked at each look. */
const askedAtOnce = 3

export type Reach = ReturnType<typeof watchReach>

/**
 * Watches whether this node alone is cut off from a shared store. It is if it does not reach the store, and another node
 * does. The node asks the others directly. While nobody reaches the store, no node is cut off: an outage of Redis must not
 * become an outage of all nodes.
 */
export function watchReach(parts: {
  nodes: Pick<Nodes, 'self' | 'isShared' | 'living' | 'urlOf' | 'nameOf'>
  state: Pick<StoreState, 'unreachable'>
  /** Asks the node with this URL whether it reaches the store. Never rejects. */
  ask: (url: string) => Promise<boolean>
  log: Log
  lookMs?: number
}) {
  const { nodes, state, ask, log } = parts
  let isCutOff = false
  /** How many looks in a row found that the state has changed. */
  let changed = 0
  let isLooking = false
  /** Each look asks the next ones of a long list. */
  let next = 0
  const listeners: (() => void)[] = []
  const timer = nodes.isShared ? setInterval(() => void look(), parts.lookMs ?? lookMs).unref() : undefined

  return {
    isCutOff: (): boolean => isCutOff,
    /** Calls back when this node is found to be cut off. */
    onCutOff: (listener: () => void): void => void listeners.push(listener),
    close: (): void => clearInterval(timer),
  }

  async function look(): Promise<void> {
    if (isLooking) return
    isLooking = true
    const witness = state.unreachable() === undefined ? undefined : await findWitness()
    isLooking = false
    // The store may be back since the question.
    const isBack = state.unreachable() === undefined
    const found = witness !== undefined && !isBack
    changed = found === isCutOff ? 0 : changed + 1
    if (changed < looksInARow && !(isBack && isCutOff)) return
    changed = 0
    isCutOff = found
    if (!found) return log.info('this node is no longer cut off from the store')
    log.error({ node: witness }, 'this node is cut off from the store: clients are sent away')
    for (const listener of listeners) listener()
  }

  /** The name of a node that reaches the store. */
  async function findWitness(): Promise<string | undefined> {
    // The workers of one hub have one URL, and any of them may answer: they are no witnesses for each other.
    const own = nodes.urlOf(nodes.self)
    const others = nodes.living().filter((node) => ![own, undefined].includes(nodes.urlOf(node)))
    const count = Math.min(askedAtOnce, others.length)
    const chosen = Array.from({ length: count }, (_, index) => others[(next + index) % others.length] ?? '')
    next += count
    const answers = await Promise.all(chosen.map((node) => ask(nodes.urlOf(node) ?? '')))
    const witness = chosen[answers.indexOf(true)]
    return witness === undefined ? undefined : nodes.nameOf(witness)
  }
}
