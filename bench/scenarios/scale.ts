import { setTimeout as delay } from 'node:timers/promises'
import { connectionsWithinOpenFiles } from '../../listener/open-files.ts'
import { freePort } from '../../test/free-port.ts'
import { startChild } from '../child.ts'
import type { commands as crowd } from '../load/crowd.ts'
import type { commands as publishers } from '../load/publishers.ts'
import { onGround } from '../peers/ground.ts'
import { startHubPeer } from '../peers/hub.ts'
import type { Peer } from '../peers/peer.ts'
import { startRedis } from '../peers/redis.ts'
import { withAllProcesses } from '../peers/workers.ts'
import { counted, type Sample, type Scenario, single } from '../scenario.ts'

/** Time in which nothing happens, milliseconds: what the hub needs then is no cost of the work. */
const idleMs = 5_000
/** Time in which the hub finishes its work for log-ins, milliseconds. */
const settleMs = 5_000
const gibibyte = 2 ** 30
/** More connections to webhooks than a hub ever has. */
const mostOutgoing = 2_000

export const scale: Scenario = {
  about:
    'The parts that docs/scale.md computes with: idle connections to several workers on one Redis, an event with and without ' +
    'subscribers, and a restart after which all come back. CPU time is that of all processes of the hub, per event, ' +
    'connection or delivery; memory is resident, with the garbage of the log-ins. Simulators and hub share the cores of the ' +
    'machine, so seconds say how long both took together. Each simulator has a loopback address of its own.',
  options: {
    connections: [20_000],
    workers: [2],
    simulators: [4],
    quiet: [3_000],
    events: [20],
    rate: [1],
    runs: [1],
  },
  figures: {
    cpu: 'CPU, µs',
    perCore: 'per core and second',
    perGiB: 'per GiB',
    redisCpu: 'CPU of Redis, µs',
    commands: 'Redis commands',
    ready: 'starts in, s',
    seconds: 'all done after, s',
    p99: '99 % of them, s',
    resumed: 'TLS sessions resumed, %',
  },
  compared: [],

  async measure(asked, _peers, say) {
    const samples: Sample[] = []
    const wanted = single(asked, 'connections')
    const log = { warn: () => say('`ulimit -Hn` allows a hub fewer connections than that') }
    const processes = single(asked, 'workers')
    const { room } = await connectionsWithinOpenFiles(
      { incoming: wanted, outgoing: mostOutgoing, processes },
      log,
    )
    const options = { ...asked, connections: [Math.min(wanted, processes * room.ofOne)] }
    for (let run = 1; run <= single(options, 'runs'); run++) {
      await measureOnce(options, (of, figures) => {
        const told = Object.entries(figures).map(([name, value]) => `${name} ${Number(value.toPrecision(3))}`)
        say(`run ${run}: ${of}: ${told.join(', ')}`)
        samples.push({ case: of, system: 'hub on Redis', run, figures })
      })
    }
    return samples
  },
}

type Figures = Record<string, number>

async function measureOnce(
  options: Parameters<Scenario['measure']>[0],
  note: (of: string, figures: Figures) => void,
): Promise<void> {
  const of = (name: string) => single(options, name)
  const [count, events] = [of('connections'), of('events')]
  await onGround([], async (ground, stops) => {
    const redis = await startRedis(ground)
    if (!redis) throw new Error('Redis is not installed')
    stops.push(redis.stop)
    const env = {
      ...redis.env,
      HUB_WORKERS: String(of('workers')),
      HUB_MAX_CONNECTIONS: String(count + 1_000),
      HUB_MQTT_PORT: String(await freePort()),
    }
    const start = async () => {
      // The code of the bench would take the messages of the primary for its own.
      const hub = await withAllProcesses(await startHubPeer(ground, env, { alone: true }))
      stops.push(hub.stop)
      return hub
    }
    let hub: Peer = await start()
    const { address, subscriber: login } = hub
    const source = await startChild<typeof publishers>('load/publishers.ts')
    stops.push(source.stop)
    await source.ask('join', { address, count: 2, logins: hub.publishers })
    const simulators = await Promise.all(
      Array.from({ length: of('simulators') }, async (_, index) => {
        const simulator = await startChild<typeof crowd>('load/crowd.ts')
        stops.push(simulator.stop)
        return { ...simulator, from: `127.0.0.${2 + index}`, count: Math.ceil(count / of('simulators')) }
      }),
    )
    const total = simulators.reduce((sum, simulator) => sum + simulator.count, 0)
    const read = async () => {
      const [ours, its, counters] = await Promise.all([hub.usage(), redis.usage(), redis.counters()])
      return { at: performance.now(), cpu: ours.cpuMs, redisCpu: its.cpuMs, commands: counters.commands }
    }
    const since = async (before: Awaited<ReturnType<typeof read>>) => {
      const now = await read()
      const of = (name: 'at' | 'cpu' | 'redisCpu' | 'commands') => now[name] - before[name]
      return { ms: of('at'), cpu: of('cpu'), redisCpu: of('redisCpu'), commands: of('commands') }
    }
    /** What one of `many` pieces of work costs, beyond what the hub needs when nothing happens. */
    const costOf = async (many: number, work: () => Promise<unknown>): Promise<Figures> => {
      const before = await read()
      await work()
      const { ms, cpu, redisCpu, commands } = await since(before)
      const each = (used: number, idleUsed: number) => (used - (idleUsed * ms) / idle.ms) / many
      const cpuEach = each(cpu, idle.cpu) * 1000
      return {
        cpu: cpuEach,
        perCore: 1e6 / cpuEach,
        redisCpu: each(redisCpu, idle.redisCpu) * 1000,
        commands: each(commands, idle.commands),
      }
    }
    const lookAtIdle = async () => {
      const before = await read()
      await delay(idleMs)
      return since(before)
    }

    await source.ask('flood', { count: of('quiet'), inFlight: 20 })
    let idle = await lookAtIdle()
    const quiet = await costOf(of('quiet'), () => source.ask('pace', { count: of('quiet'), intervalMs: 10 }))
    note('an event without subscribers', quiet)

    const bytes = (await hub.usage()).bytes
    let ms = 0
    const joined = await costOf(total, async () => {
      const began = performance.now()
      await Promise.all(
        simulators.map(({ ask, from, count }) =>
          ask('join', { address: { ...address, from }, count, filter: 'radio/#', qos: 0, login }),
        ),
      )
      ms = performance.now() - began
      await delay(settleMs)
    })
    const bytesEach = ((await hub.usage()).bytes - bytes) / total
    const crowds = counted(total, 'connection')
    note(`${crowds}, full handshakes`, { ...joined, seconds: ms / 1000, perGiB: gibibyte / bytesEach })

    idle = await lookAtIdle()
    note(`${crowds}, idle for a second`, { cpu: (idle.cpu * 1000) / (idle.ms / 1000) })

    const delivered = await costOf(events * total, async () => {
      await Promise.all(
        simulators.map(({ ask, count }) => ask('begin', { room: events * count, fresh: true })),
      )
      await source.ask('pace', { count: events, intervalMs: 1000 / of('rate') })
      const receipts = await Promise.all(
        simulators.map(({ ask, count }) => ask('finish', { count: events * count })),
      )
      const received = receipts.reduce((sum, receipt) => sum + receipt.received, 0)
      if (received < events * total) throw new Error(`${events * total - received} deliveries are missing`)
    })
    note('a delivery at QoS 0', {
      cpu: delivered.cpu ?? Number.NaN,
      perCore: delivered.perCore ?? Number.NaN,
    })

    await Promise.all(simulators.map(({ ask }) => ask('leave', {})))
    await source.ask('leave', {})
    await hub.stop()
    const began = performance.now()
    hub = await start()
    const readyMs = performance.now() - began
    const resumed: number[] = []
    const p99: number[] = []
    const back = await costOf(total, async () => {
      const all = await Promise.all(
        simulators.map(({ ask }) => ask('comeBack', { resume: true, atOnce: 50 })),
      )
      ms = Math.max(...all.map((each) => each.ms))
      for (const each of all) {
        resumed.push(each.resumed)
        p99.push(each.p99)
      }
    })
    note(`${crowds}, back after a restart`, {
      ...back,
      ready: readyMs / 1000,
      seconds: (readyMs + ms) / 1000,
      p99: (readyMs + Math.max(...p99)) / 1000,
      resumed: (resumed.reduce((sum, each) => sum + each, 0) / total) * 100,
    })
  })
}
