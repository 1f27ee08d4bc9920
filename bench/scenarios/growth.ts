import { deliver, flood, joinCrowd, joinPublishers, warmUp } from '../delivery.ts'
import { startHubPeer } from '../peers/hub.ts'
import { type Sample, type Scenario, single } from '../scenario.ts'
import { type Act, alternately, onStage } from '../stage.ts'

/** A quantity, such as subscribers, that is ten times larger on the large node. */
interface Dimension {
  name: string
  from: number
  /** Number of livestreams in the feed. Absent: the usual number. */
  livestreams?: (size: number) => number
  prepare: (act: Act, size: number) => Promise<void>
  /** CPU time of one delivery or one event, microseconds. */
  cost: (act: Act, size: number) => Promise<number>
}

const tenfold = 10
const events = 2000

const dimensions: Dimension[] = [
  ...[0, 1].map((qos) => ({
    name: `a delivery at QoS ${qos}, by subscribers`,
    from: 300,
    prepare: (act: Act, count: number) => crowd(act, { count, qos }),
    cost: async (act: Act, subscribers: number) =>
      (await deliver(act, { events: 30, rate: 10, subscribers })).cpu,
  })),
  {
    name: 'an event, by livestreams',
    from: 60,
    livestreams: (size) => size,
    prepare: (act) => crowd(act, { count: 1, qos: 1 }),
    cost: eventCost,
  },
  {
    name: 'an event, by credentials',
    from: 100,
    prepare: async (act, count) => {
      await crowd(act, { count: 1, qos: 1 })
      for (let made = 0; made < count; made++) await act.peer.addCredential?.()
    },
    cost: eventCost,
  },
  {
    name: 'an event, by offline sessions it is not for',
    from: 300,
    prepare: async (act, count) => {
      await crowd(act, { count, qos: 1, clean: false, filter: 'radio/urn:org:permanent-livestream:none/#' })
      await act.crowd.ask('dismiss', {})
      await crowd(act, { count: 1, qos: 1 })
    },
    cost: eventCost,
  },
  {
    name: 'an event, by offline sessions that get it later',
    from: 30,
    prepare: async (act, count) => {
      await crowd(act, { count, qos: 1, clean: false })
      await act.crowd.ask('dismiss', {})
      await crowd(act, { count: 1, qos: 1 })
    },
    cost: eventCost,
  },
]

export const growth: Scenario = {
  about:
    'Whether the cost stays as there is ten times as much of something: CPU time of the hub per delivery or event.',
  options: { runs: [3] },
  figures: { cpu: 'CPU, µs', ratio: 'times that of a tenth' },
  compared: [],

  async measure(options, _asked, say) {
    const samples: Sample[] = []
    for (const dimension of dimensions) samples.push(...(await grow(dimension, single(options, 'runs'), say)))
    return samples
  },
}

/** Measures a small node and a large one, alternately. */
function grow(dimension: Dimension, runs: number, say: (line: string) => void): Promise<Sample[]> {
  const { name, from, livestreams, prepare, cost } = dimension
  const sizes = [from, from * tenfold] as const
  const ground = (size: number) => (livestreams ? { livestreams: livestreams(size) } : {})
  const start = [(of: Parameters<typeof startHubPeer>[0]) => startHubPeer(of)]
  return onStage(start, ground(sizes[0]), ([small]) =>
    onStage(start, ground(sizes[1]), async ([large]) => {
      if (!small || !large) throw new Error('a hub did not start')
      const acts = [small, large]
      const sizeOf = (act: Act) => (act === small ? sizes[0] : sizes[1])
      for (const act of acts) {
        await joinPublishers(act, 1)
        await warmUp([act])
        await prepare(act, sizeOf(act))
        await cost(act, sizeOf(act))
      }
      const costs = await alternately(acts, runs, async (act, run) => {
        const cpu = await cost(act, sizeOf(act))
        say(`${name}, ${sizeOf(act)}: run ${run}: ${cpu.toFixed(1)} µs`)
        return { act, run, cpu }
      })
      return costs.map(({ act, run, cpu }) => {
        const tenth = costs.find((other) => other.act === small && other.run === run)
        const figures = { cpu, ...(act === large && tenth && { ratio: cpu / tenth.cpu }) }
        return { case: `${name}: ${sizeOf(act).toLocaleString('en')}`, system: 'hub', run, figures }
      })
    }),
  )
}

async function crowd(act: Act, of: Parameters<typeof joinCrowd>[1]): Promise<void> {
  await joinCrowd(act, of)
}

async function eventCost(act: Act): Promise<number> {
  return (await flood(act, { count: events, inFlight: 50 })).cpu
}
