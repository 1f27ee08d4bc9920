import { setTimeout as delay } from 'node:timers/promises'
import { enterCrowd, joinPublishers } from '../delivery.ts'
import type { Peer } from '../peers/peer.ts'
import { type Sample, type Scenario, single } from '../scenario.ts'
import { onStage, systems } from '../stage.ts'

/** Time in which the other node does nothing but live, milliseconds. */
const idleMs = 3_000
/** Time in which nodes finish their work for log-ins, milliseconds. */
const settleMs = 1_000

export const nodes: Scenario = {
  about:
    'What nodes cost each other: of two nodes on one Redis, one takes events and clients, and the other one has none. CPU ' +
    'time of that other node, without what it needs when nothing happens, and commands of Redis, those of scripts included.',
  options: { events: [2000], rate: [200], connections: [500], runs: [5], warm: [5000] },
  figures: {
    cpu: 'CPU of the other node, µs',
    own: 'CPU of the node itself, µs',
    commands: 'Redis commands',
    bytes: 'bytes to Redis',
  },
  compared: [],

  async measure(options, _asked, say) {
    const [events, rate] = [single(options, 'events'), single(options, 'rate')]
    const connections = single(options, 'connections')
    const samples: Sample[] = []
    await onStage([systems.redis], {}, async ([act]) => {
      if (!act) return
      const { peer, crowd, publishers } = act
      const other = await peer.startBeside?.()
      if (!other || !peer.redis) throw new Error('the hub has no Redis')
      try {
        await joinPublishers(act, 2)
        await publishers.ask('flood', { count: single(options, 'warm'), inFlight: 20 })
        const idlePerMs = await idleOf(other)
        const cost = async (of: string, run: number, count: number, work: () => Promise<unknown>) => {
          const figures = await costOf({ peer, other, idlePerMs, count }, work)
          say(`run ${run}: ${of}: ${figures.cpu.toFixed(0)} µs at the other node`)
          samples.push({ case: of, system: peer.name, run, figures })
        }
        for (let run = 1; run <= single(options, 'runs'); run++) {
          const intervalMs = 1000 / rate
          await cost('an event', run, events, () => publishers.ask('pace', { count: events, intervalMs }))
          await cost('a clean log-in', run, connections, async () => {
            await enterCrowd(act, { count: connections, qos: 0 })
            await delay(settleMs)
          })
          await cost('the end of a clean session', run, connections, async () => {
            await crowd.ask('dismiss', {})
            await delay(settleMs)
          })
        }
      } finally {
        await other.stop()
      }
    })
    return samples
  },
}

/** CPU time for each millisecond in which nothing happens, milliseconds. */
async function idleOf(node: Peer): Promise<number> {
  const before = await node.usage()
  await delay(idleMs)
  return ((await node.usage()).cpuMs - before.cpuMs) / idleMs
}

/** What one of `count` events or clients costs. */
async function costOf(
  of: { peer: Peer; other: Peer; idlePerMs: number; count: number },
  work: () => Promise<unknown>,
) {
  const { peer, other, idlePerMs, count } = of
  const read = async () => ({
    at: performance.now(),
    own: (await peer.usage()).cpuMs,
    other: (await other.usage()).cpuMs,
    ...(await peer.redis?.counters()),
  })
  const before = await read()
  await work()
  const after = await read()
  const idle = (after.at - before.at) * idlePerMs
  return {
    cpu: ((after.other - before.other - idle) * 1000) / count,
    own: ((after.own - before.own) * 1000) / count,
    commands: ((after.commands ?? 0) - (before.commands ?? 0)) / count,
    bytes: ((after.bytes ?? 0) - (before.bytes ?? 0)) / count,
  }
}
