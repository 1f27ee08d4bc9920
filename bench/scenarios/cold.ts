import { countCpu } from '../cost.ts'
import { deliver, enterCrowd, flood, joinPublishers } from '../delivery.ts'
import { freshly } from '../freshly.ts'
import type { StartPeer } from '../peers/peer.ts'
import { counted, list, type Options, type Sample, type Scenario, single } from '../scenario.ts'
import { type Act, chosen, type System } from '../stage.ts'

type Say = (line: string) => void

const peers: System[] = ['hub', 'mosquitto', 'nats', 'aedes', 'floor']
/** Events on their way at a time, where publishers send as fast as acknowledgements come. */
const inFlight = 100
/** How long acknowledgements are awaited after the last event, seconds. */
const patienceSeconds = 60

const comparisons = {
  'open-loop': {
    compare: openLoops,
    about:
      '**open-loop**: --publishers send at --share percent of the rate that the warm system takes from them, whether ' +
      'acknowledged or not: right after the start, and once more after --warm events.',
  },
  latency: {
    compare: latencies,
    about:
      '**latency**: the time from publish to receipt at QoS 1, --rate events a second, beginning with the first event.',
  },
}

export const cold: Scenario = {
  about:
    'What comes right after the start: no event before, nothing compiled yet. Systems are started anew in every run, and run ' +
    'alone, with load generators that are warm: they play --load events before. Subscribers and publishers have half of the cores, the system the other.',
  options: {
    runs: [6],
    seconds: [5],
    subscribers: [10, 100],
    rate: [10],
    publishers: [10],
    share: [60],
    warm: [20_000],
    load: [7000],
  },
  parts: Object.fromEntries(Object.entries(comparisons).map(([name, { about }]) => [name, about])),
  figures: {
    rate: 'events per second',
    cpu: 'CPU per event, µs',
    p50: 'p50, ms',
    p99: 'p99, ms',
    times: 'p99 ÷ warm',
    lost: 'lost',
  },
  compared: ['p50', 'p99', 'cpu'],
  peers,

  async measure(options, asked, say, only) {
    const samples: Sample[] = []
    for (const [name, { compare }] of Object.entries(comparisons)) {
      if (only.length > 0 && !only.includes(name)) continue
      samples.push(...(await compare(chosen(asked, peers), options, say)))
    }
    return samples
  },
}

async function latencies(starters: readonly StartPeer[], options: Options, say: Say): Promise<Sample[]> {
  const rate = single(options, 'rate')
  const events = Math.ceil(single(options, 'seconds') * rate)
  const samples: Sample[] = []
  for (const subscribers of list(options, 'subscribers')) {
    const name = `${counted(subscribers, 'subscriber')}, right after the start`
    const found = await freshly(starters, timesOf(options), async (act, run) => {
      await joinPublishers(act, 1)
      await enterCrowd(act, { count: subscribers, qos: 1 })
      const { p50, p99, cpu, lost } = await deliver(act, { events, rate, subscribers })
      say(`${act.peer.name}: run ${run}, ${subscribers} subscribers: p50 ${p50}, p99 ${p99} ms`)
      // CPU time per event, like in the other part.
      const figures = { rate, p50, p99, cpu: cpu * subscribers, lost }
      return [{ case: name, system: act.peer.name, run, figures }]
    })
    samples.push(...found)
  }
  return samples
}

async function openLoops(starters: readonly StartPeer[], options: Options, say: Say): Promise<Sample[]> {
  const warm = { count: single(options, 'warm'), inFlight }
  const join = async (act: Act) => {
    await joinPublishers(act, single(options, 'publishers'))
    await enterCrowd(act, { count: 1, qos: 1 })
  }
  const rates = new Map<string, number>()
  await freshly(starters, { ...timesOf(options), runs: 1 }, async (act) => {
    await join(act)
    await flood(act, warm)
    const { rate } = await flood(act, warm)
    rates.set(act.peer.name, (rate * single(options, 'share')) / 100)
    say(`${act.peer.name}: takes ${rate.toFixed(0)} events a second when warm`)
    return []
  })
  return freshly(starters, timesOf(options), async (act, run) => {
    const { name } = act.peer
    const rate = rates.get(name) ?? NaN
    await join(act)
    const atOnce = await openLoop(act, rate, single(options, 'seconds'))
    await flood(act, warm)
    const later = await openLoop(act, rate, single(options, 'seconds'))
    const times = atOnce.p99 / later.p99
    say(`${name}: run ${run}: p99 ${atOnce.p99}, warm ${later.p99} ms`)
    return [
      { case: 'acknowledged right after the start', system: name, run, figures: { ...atOnce, times } },
      { case: 'acknowledged when warm', system: name, run, figures: later },
    ]
  })
}

function timesOf(options: Options) {
  return { runs: single(options, 'runs'), warm: single(options, 'load') }
}

/** Sends `rate` events a second without waiting. `p50` and `p99`: until the acknowledgement, milliseconds. */
async function openLoop({ peer, crowd, publishers }: Act, rate: number, seconds: number) {
  const count = Math.ceil(rate * seconds)
  await crowd.ask('begin', { room: count, fresh: true })
  const cpuOf = await countCpu(peer)
  await publishers.ask('pace', { count, intervalMs: 1000 / rate })
  const { acknowledged, p50, p99 } = await publishers.ask('settle', { count, seconds: patienceSeconds })
  const { events } = await crowd.ask('finish', { count })
  return {
    rate,
    cpu: await cpuOf(count),
    p50,
    p99,
    lost: count - Math.min(acknowledged, events),
  }
}
