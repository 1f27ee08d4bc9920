import { deliver, joinCrowd, joinPublishers, warmUp, warmUpEvents } from '../delivery.ts'
import type { StartPeer } from '../peers/peer.ts'
import { counted, list, type Options, type Sample, type Scenario, single } from '../scenario.ts'
import { alternately, bothWays, chosen, onStage, type System } from '../stage.ts'

const peers: System[] = ['hub', 'mosquitto', 'nats', 'aedes', 'aedes-redis', 'bare', 'bare-qos1']

export const fanout: Scenario = {
  about:
    'What it costs to bring an event to many subscribers: events of 900 bytes at a steady pace to subscribers of ' +
    '`radio/#` over TLS. CPU time is that of the system with its validator, without that of a Redis. ' +
    'Aedes on Redis sends every event through Redis, also to its own subscribers. Bare sockets always send QoS 0; those ' +
    'of QoS 1 send what was asked for, and read the PUBACKs. Half a ' +
    'second of every run is not counted: a system whose turn it was not has cooled down. Subscribers and publishers have half of the cores, the systems the other; ' +
    'a subscriber acknowledges when nothing is left to be read by the others, who would be on machines of their own.',
  options: {
    seconds: [2],
    runs: [6],
    subscribers: [1000, 3000],
    qos: [0, 1],
    rate: [10],
    warm: [warmUpEvents],
  },
  figures: {
    cpu: 'CPU per delivery, µs',
    p50: 'p50, ms',
    p99: 'p99, ms',
    lost: 'lost',
  },
  compared: ['cpu', 'p50', 'p99'],
  peers,

  measure: (options, asked, say) => fanOut(chosen(asked, peers), options, say),
}

/** Brings events to the subscribers of each of these systems. */
export function fanOut(
  all: readonly StartPeer[],
  options: Options,
  say: (line: string) => void,
): Promise<Sample[]> {
  const rate = single(options, 'rate')
  const events = Math.ceil(single(options, 'seconds') * rate)
  return bothWays(all, single(options, 'runs'), say, (starters, runs) =>
    onStage(starters, { apart: true }, async (acts) => {
      const samples: Sample[] = []
      for (const act of acts) await joinPublishers(act, 1)
      await warmUp(acts, single(options, 'warm'))
      let present = 0
      for (const subscribers of list(options, 'subscribers')) {
        for (const act of acts) {
          say(`${act.peer.name}: ${subscribers} subscribers connect`)
          await joinCrowd(act, { count: subscribers - present, qos: 0 })
        }
        present = subscribers
        for (const qos of list(options, 'qos')) {
          for (const act of acts) {
            await act.crowd.ask('change', { qos })
            await deliver(act, { events: 5 * rate, rate, subscribers })
          }
          const found = await alternately(acts, runs, async (act, run) => {
            await deliver(act, { events: Math.ceil(rate / 2), rate, subscribers })
            const { cpu, p50, p99, max, lost } = await deliver(act, { events, rate, subscribers })
            const { name } = act.peer
            say(`${name}: run ${run}, ${subscribers} at QoS ${qos}: ${cpu.toFixed(1)} µs, p99 ${p99} ms`)
            const figures = { cpu, p50, p99, max, lost }
            return { case: `${counted(subscribers, 'subscriber')}, QoS ${qos}`, system: name, run, figures }
          })
          samples.push(...found)
        }
      }
      return samples
    }),
  )
}
