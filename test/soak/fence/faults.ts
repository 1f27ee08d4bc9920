import { setTimeout as delay } from 'node:timers/promises'
import { createRandom, type Random } from '../../random.ts'
import type { ClusterNode } from './cluster.ts'

/** A temporary fault of one node, or of the store. */
export interface Fault {
  /** When the fault begins, milliseconds since the beginning of the run. */
  at: number
  /** Index of the node with the fault, or the store. */
  target: number | 'store'
  kind: NodeFault | StoreFault
  ms: number
}

const nodeFaults = ['kill', 'stop', 'cut', 'hold', 'lose', 'deafen', 'slow'] as const
/** Faults of one worker of a node that has several. */
const workerFaults = ['kill worker', 'stop worker'] as const
const storeFaults = ['restart', 'pause', 'slow'] as const
type NodeFault = (typeof nodeFaults)[number] | (typeof workerFaults)[number]
type StoreFault = (typeof storeFaults)[number] | 'fail over'

/** Faults of the store. A single server can restart or pause, a replicated one can fail over. */
export interface StoreFaults {
  /** Kills the server, and starts it again after `ms` milliseconds with its data on disk. */
  restart?(ms: number): Promise<void>
  /** Stops the process of the server for `ms` milliseconds. Its connections stay open. */
  pause?(ms: number): Promise<void>
  /** Lets a replica take over. The replica lacks the commits of the last `behindMs` milliseconds. */
  failOver?(behindMs: number): Promise<void>
}

/**
 * Plans the faults that follow from the seed, ordered by their beginning. A node has one fault at a time, and so has
 * the store. `workers`: how many each node has. Half of the faults of a node with several are those of a single one.
 */
export function planFaults(
  seed: string,
  seconds: number,
  of: { hasReplica: boolean; workers: readonly number[] },
): Fault[] {
  const { hasReplica, workers } = of
  const end = seconds * 1000
  const ofNodes = workers.flatMap((count, target) => {
    const random = createRandom(`${seed} node ${target}`)
    return planOne(random, end, [1_000, 7_000], () => {
      const kind = count > 1 && random.happens(0.5) ? random.oneOf(workerFaults) : random.oneOf(nodeFaults)
      const longest = kind.startsWith('kill') ? 3_000 : 10_000
      return { target, kind, ms: Math.round(random.between(500, longest)) }
    })
  })
  const random = createRandom(`${seed} store`)
  const ofStore = planOne(random, end, [6_000, 15_000], () => {
    const kind = hasReplica ? random.oneOf(['fail over', 'slow'] as const) : random.oneOf(storeFaults)
    return { target: 'store' as const, kind, ms: Math.round(random.between(100, 3_000)) }
  })
  return [...ofNodes, ...ofStore].sort((one, other) => one.at - other.at)
}

function planOne<Of extends { ms: number }>(
  random: Random,
  end: number,
  [least, most]: readonly [number, number],
  next: () => Of,
): ({ at: number } & Of)[] {
  const planned: ({ at: number } & Of)[] = []
  for (let at = random.between(least, most); ; ) {
    const fault = next()
    if (at + fault.ms > end) return planned
    planned.push({ at: Math.round(at), ...fault })
    at += fault.ms + random.between(least, most)
  }
}

/** Makes the faults happen. Resolves when nodes, networks and store work again. */
export async function makeFaults(
  faults: readonly Fault[],
  nodes: readonly ClusterNode[],
  store: StoreFaults,
): Promise<void> {
  const began = performance.now()
  await Promise.all([...nodes.keys(), 'store' as const].map((target) => makeThoseOf(target)))

  async function makeThoseOf(target: number | 'store'): Promise<void> {
    for (const fault of faults) {
      if (fault.target !== target) continue
      await delay(Math.max(0, began + fault.at - performance.now()))
      const node = target === 'store' ? undefined : nodes[target]
      if (node) await strikeNode(node, fault)
      else await strikeStore(fault)
    }
  }

  async function strikeStore({ kind, ms }: Fault): Promise<void> {
    if (kind === 'restart') await store.restart?.(ms)
    else if (kind === 'pause') await store.pause?.(ms)
    else if (kind === 'fail over') await store.failOver?.(ms)
    else {
      for (const { way } of nodes) way.slow(ms / 10)
      await delay(2 * ms)
      for (const { way } of nodes) way.slow(0)
    }
  }
}

async function strikeNode(node: ClusterNode, { kind, ms }: Fault): Promise<void> {
  const { way } = node
  if (kind === 'kill') await node.kill()
  else if (kind === 'stop') node.pause()
  else if (kind === 'kill worker') node.killWorker(ms)
  else if (kind === 'stop worker') node.pauseWorker(ms)
  else if (kind === 'cut') way.cut()
  else if (kind === 'hold' || kind === 'lose') way.hold()
  else if (kind === 'deafen') way.deafen()
  else way.slow(ms / 20)
  await delay(ms)
  if (kind === 'kill') await node.start()
  else if (kind === 'stop' || kind === 'stop worker') node.resume()
  else if (kind === 'lose') way.drop()
  way.open()
}

export function describeFault({ at, target, kind, ms }: Fault): string {
  const where = target === 'store' ? 'the store' : `node ${target}`
  return `${(at / 1000).toFixed(1)} s: ${where}, ${kind}, ${ms} ms`
}
