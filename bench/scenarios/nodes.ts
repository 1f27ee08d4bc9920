import { setTimeout as delay } from 'node:timers/promises'
import { enterCrowd, joinPublishers } from '../delivery.ts'
import type { Peer } from '../peers/peer.ts'
import { type Sample, type Scenario, single } from '../scenario.ts'
import { type Act, onStage, systems } from '../stage.ts'

/** Time in which the other nodes do nothing but live, milliseconds. */
const idleMs = 10_000
/** Time in which nodes finish their work, milliseconds. */
const settleMs = 1_000
/** Longest wait for acknowledgements, seconds. */
const patienceS = 60

export const nodes: Scenario = {
  about:
    'What nodes cost each other: of two nodes on one Redis, one takes events and clients, and the other one has none. CPU ' +
    'time of that other node, without what it needs when nothing happens, and commands of Redis, those of scripts included. ' +
    'With `--before` a node of that commit is there too, at the same time.',
  options: { events: [2000], rate: [200], connections: [500], runs: [5], warm: [5000] },
  figures: {
    cpu: 'CPU of the other node, µs',
    own: 'CPU of the node itself, µs',
    redis: 'CPU of Redis, µs',
    commands: 'Redis commands',
    bytes: 'bytes to Redis',
  },
  compared: [],
  peers: ['hub'],

  async measure(options, { before }, say) {
    const [events, rate] = [single(options, 'events'), single(options, 'rate')]
    const connections = single(options, 'connections')
    const samples: Sample[] = []
    await onStage([systems.redis], {}, async ([act]) => {
      if (!act) return
      const { peer, crowd, publishers } = act
      const { startBeside } = peer
      if (!startBeside || !peer.redis) throw new Error('the hub has no Redis')
      const others: Peer[] = []
      try {
        others.push(await startBeside())
        if (before) others.push(await startBeside(before))
        await joinPublishers(act, 2)
        await publishers.ask('flood', { count: single(options, 'warm'), inFlight: 20 })
        await delay(settleMs)
        const idle = await costOf({ act, others, count: 1 }, () => delay(idleMs))
        const cost = async (of: string, run: number, count: number, work: () => Promise<unknown>) => {
          const { ms, own, redis, commands, bytes, cpus } = await costOf({ act, others, count }, async () => {
            await work()
            await delay(settleMs)
          })
          const common = { own, redis: redis - (ms * idle.redis) / idle.ms, commands, bytes }
          for (const [nth, used] of cpus.entries()) {
            const cpu = used - (ms * (idle.cpus[nth] ?? 0)) / idle.ms
            const system = nth === 0 ? 'hub' : 'before'
            say(`run ${run}: ${of}: ${cpu.toFixed(0)} µs at the other node (${system})`)
            samples.push({ case: of, system, run, figures: { cpu, ...(nth === 0 && common) } })
          }
        }
        for (let run = 1; run <= single(options, 'runs'); run++) {
          const intervalMs = 1000 / rate
          await cost('an event', run, events, async () => {
            await publishers.ask('pace', { count: events, intervalMs })
            await publishers.ask('settle', { count: events, seconds: patienceS })
          })
          await cost('a clean log-in', run, connections, () =>
            enterCrowd(act, { count: connections, qos: 0 }),
          )
          await cost('the end of a clean session', run, connections, () => crowd.ask('dismiss', {}))
        }
      } finally {
        await Promise.all(others.map((other) => other.stop()))
      }
    })
    return samples
  },
}

/** What one of `count` events or clients costs. `ms`: the time of the work by `count`. */
async function costOf(
  { act: { peer }, others, count }: { act: Act; others: readonly Peer[]; count: number },
  work: () => Promise<unknown>,
) {
  const read = async () => ({
    ms: performance.now(),
    own: (await peer.usage()).cpuMs * 1000,
    redis: ((await peer.redis?.usage())?.cpuMs ?? 0) * 1000,
    commands: 0,
    bytes: 0,
    ...(await peer.redis?.counters()),
    cpus: await Promise.all(others.map(async (other) => (await other.usage()).cpuMs * 1000)),
  })
  const before = await read()
  await work()
  const after = await read()
  const each = (of: (figures: typeof before) => number) => (of(after) - of(before)) / count
  return {
    ms: each(({ ms }) => ms),
    own: each(({ own }) => own),
    redis: each(({ redis }) => redis),
    commands: each(({ commands }) => commands),
    bytes: each(({ bytes }) => bytes),
    cpus: others.map((_, nth) => each(({ cpus }) => cpus[nth] ?? 0)),
  }
}
