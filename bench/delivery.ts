import { countCpu } from './cost.ts'
import type { Receipts } from './load/receipts.ts'
import type { Peer } from './peers/peer.ts'
import type { Act } from './stage.ts'

interface Joining {
  count: number
  qos: number
  clean?: boolean
  filter?: string
}

/** Connects `count` more subscribers. `kilobytes`: memory of the system for each. */
export async function joinCrowd(act: Act, of: Joining): Promise<{ kilobytes: number; ms: number }> {
  const { peer } = act
  const before = await peer.usage({ collected: true })
  const { ms } = await enterCrowd(act, of)
  // Time for the system to finish its work for the log-ins.
  await new Promise((resolve) => setTimeout(resolve, 1000))
  const after = await peer.usage({ collected: true })
  return { kilobytes: (after.bytes - before.bytes) / 1000 / of.count, ms }
}

/** Like `joinCrowd`, without the measurement of memory, which makes the system collect garbage. */
export function enterCrowd({ peer, crowd }: Act, of: Joining): Promise<{ ms: number }> {
  return crowd.ask('join', { filter: 'radio/#', ...of, address: peer.address, login: peer.subscriber })
}

export async function joinPublishers({ peer, publishers }: Act, count: number): Promise<void> {
  await publishers.ask('leave', {})
  await publishers.ask('join', { address: peer.address, count, logins: peer.publishers })
}

/** Number of events before a measurement: half an hour at ten a second. By then every system has compiled its code. */
export const warmUpEvents = 18_000

/** Publishes this many events on each system. Ten subscribers get the first half at QoS 0, the second at QoS 1. */
export async function warmUp(acts: readonly Act[], events = warmUpEvents): Promise<void> {
  for (const act of acts) {
    const { crowd, publishers } = act
    await joinCrowd(act, { count: 10, qos: 0 })
    for (const qos of [0, 1]) {
      await crowd.ask('change', { qos })
      await publishers.ask('flood', { count: Math.ceil(events / 12), inFlight: 50 })
      await publishers.ask('flood', { count: Math.ceil((events * 5) / 12), inFlight: 1 })
    }
    await crowd.ask('dismiss', {})
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
}

export interface Delivered extends Receipts {
  /** CPU time of the delivering process per message delivered, microseconds. */
  cpu: number
  lost: number
}

/** Publishes `rate` events a second. Returns the receipts and their CPU cost. */
export async function deliver(
  { peer, crowd, publishers }: Act,
  of: { events: number; rate: number; subscribers: number },
): Promise<Delivered> {
  const count = of.events * of.subscribers
  await crowd.ask('begin', { room: count, fresh: true })
  const cpuOf = await countCpu(peer)
  await publishers.ask('pace', { count: of.events, intervalMs: 1000 / of.rate })
  const receipts = await crowd.ask('finish', { count })
  return { ...receipts, cpu: await cpuOf(receipts.received), lost: count - receipts.received }
}

/** A peer that uses less than this share of a core between two looks is quiet. Milliseconds between looks. */
const quietShare = 0.05
const lookMs = 500

/** Resolves when a peer has nothing left to do. */
export async function untilQuiet({ usage }: Pick<Peer, 'usage'>): Promise<void> {
  for (let before = (await usage()).cpuMs, used = Infinity; used > quietShare * lookMs; ) {
    await new Promise((resolve) => setTimeout(resolve, lookMs))
    const now = (await usage()).cpuMs
    used = now - before
    before = now
  }
}

/** Publishes `count` events, as fast as acknowledgements come, with `inFlight` events in flight. */
export async function flood({ peer, crowd, publishers }: Act, of: { count: number; inFlight: number }) {
  await crowd.ask('begin', { room: of.count, fresh: true })
  const cpuOf = await countCpu(peer)
  const { p50, p99 } = await publishers.ask('flood', of)
  const receipts = await crowd.ask('finish', of)
  // The system may still compact what these events wrote. That CPU counts here, not for the system measured next.
  await untilQuiet(peer)
  return {
    rate: receipts.received / receipts.seconds,
    p50,
    p99,
    cpu: await cpuOf(of.count),
    lost: of.count - receipts.events,
  }
}
