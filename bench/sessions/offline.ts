import { countCpu } from '../cost.ts'
import { joinPublishers, warmUp } from '../delivery.ts'
import { counted, list, type Options, type Sample, single } from '../scenario.ts'
import { type Act, alternately, onStage } from '../stage.ts'
import { leaveBehind, type Part, roomFor } from './part.ts'

export const offlineFigures = {
  cpu: 'CPU per event, µs',
  cpuOfNone: 'with none, µs',
  cpuTimes: 'times that with none',
  p50: 'until PUBACK at a steady pace, p50, ms',
  p99: 'p99, ms',
  acknowledged: 'acknowledged, %',
  pacedCpu: 'CPU per event at that pace, µs',
  redisCpu: 'CPU of Redis per event, µs',
  commands: 'commands of Redis per event',
  bytes: 'bytes to Redis per event',
}

const turns = 10
const names = ['cpu', 'redisCpu', 'commands', 'bytes'] as const

/** Measures an event on a node with many offline sessions, beside one with none. */
export const offline: Part = async (system, options, say) => {
  const counts = list(options, 'offline')
  const start = (ground: Parameters<typeof system.start>[0]) =>
    system.start(ground, roomFor(Math.max(...counts)))
  return onStage([start, start], { apart: true }, async ([none, some]) => {
    if (!none || !some) return []
    for (const act of [none, some]) {
      await joinPublishers(act, 1)
      await warmUp([act], single(options, 'warm'))
    }
    const samples: Sample[] = []
    for (const wanted of counts) {
      const made = await leaveBehind(some, { count: wanted, seconds: single(options, 'bound') })
      say(`${system.name}: ${made} of ${wanted} sessions are there`)
      for (let run = 1; run <= single(options, 'runs'); run++) {
        const [cost, ofNone] = await costsOf([some, none], options)
        if (!cost || !ofNone) throw new Error('nothing was measured')
        const { isOverwhelmed, ...paced } = await pace(some, options)
        const compared = { cpuOfNone: ofNone.cpu, cpuTimes: cost.cpu / ofNone.cpu }
        const figures = { ...cost, ...compared, ...paced }
        say(`${system.name}: ${made} offline, run ${run}: ${JSON.stringify(figures)}`)
        samples.push({ case: counted(made, 'offline session'), system: system.name, run, figures })
        if (isOverwhelmed || made < wanted) {
          say(`${system.name}: more are not measured, it does not keep up with these`)
          return samples
        }
      }
    }
    return samples
  })
}

/**
 * Measures the cost of an event for each act. Short alternate rounds let a busy moment of the machine hit all acts. If an
 * act falls behind, the round is the last.
 */
async function costsOf(acts: readonly Act[], options: Options) {
  const all = acts.map((act) => ({ act, total: none() }))
  let last = Infinity
  const play = async ({ act, total }: (typeof all)[number], round: number) => {
    if (round > last) return
    const before = await usageOf(act)
    const { sent, acknowledged } = await act.publishers.ask('flood', {
      count: Math.ceil(single(options, 'events') / turns),
      inFlight: single(options, 'inflight'),
      lasts: single(options, 'seconds') / turns,
      within: awaitedSeconds(options),
    })
    const after = await usageOf(act)
    if (acknowledged < sent) last = round
    total.events += acknowledged
    for (const name of names) total[name] += after[name] - before[name]
  }
  // The first round does not count, because the systems still compile their code.
  for (const each of all) await play(each, 0)
  if (last > 0) for (const each of all) each.total = none()
  await alternately(all, turns, play)
  return all.map(({ act, total }) => {
    const { cpu, ...ofRedis } = Object.fromEntries(names.map((name) => [name, total[name] / total.events]))
    return { cpu: cpu ?? NaN, ...(act.peer.redis && ofRedis) }
  })
}

/** A pause of the machine must not look like a node that falls behind, however short the measurement is. */
function awaitedSeconds(options: Options): number {
  return Math.max(30, single(options, 'seconds') * 3)
}

const none = () => ({ events: 0, cpu: 0, redisCpu: 0, commands: 0, bytes: 0 })

/** Usage of the node and its Redis. CPU time is in microseconds. */
async function usageOf({ peer }: Act) {
  const [node, redis] = [await peer.usage(), await peer.redis?.usage()]
  const { commands, bytes } = (await peer.redis?.counters()) ?? { commands: 0, bytes: 0 }
  return { cpu: node.cpuMs * 1000, redisCpu: (redis?.cpuMs ?? 0) * 1000, commands, bytes }
}

/** Sends `rate` events a second without waiting for acknowledgements. */
async function pace({ peer, publishers }: Act, options: Options) {
  const [rate, seconds] = [single(options, 'rate'), single(options, 'seconds')]
  const count = Math.ceil(rate * seconds)
  const cpuOf = await countCpu(peer)
  await publishers.ask('pace', { count, intervalMs: 1000 / rate })
  const { acknowledged, p50, p99 } = await publishers.ask('settle', {
    count,
    seconds: awaitedSeconds(options),
  })
  return {
    p50,
    p99,
    acknowledged: (acknowledged / count) * 100,
    pacedCpu: await cpuOf(acknowledged),
    isOverwhelmed: acknowledged < count,
  }
}
