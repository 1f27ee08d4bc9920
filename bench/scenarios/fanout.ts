import { deliver, joinCrowd, joinPublishers, warmUp, warmUpEvents } from '../delivery.ts'
import { counted, list, type Sample, type Scenario, single } from '../scenario.ts'
import { type Act, alternately, chosen, onStage } from '../stage.ts'

export const fanout: Scenario = {
  about:
    'What it costs to bring an event to many subscribers: events of 900 bytes at a steady pace to subscribers of ' +
    '`radio/#` over TLS. CPU time is that of the system with its validator. ' +
    'Aedes on Redis sends every event through Redis, also to its own subscribers. Bare sockets always send QoS 0; those ' +
    'of QoS 1 send what was asked for, and read the PUBACKs. Memory is that of 3,000 connections after the first 200, before the first event. Half a ' +
    'second of every run is not counted: a system whose turn it was not has cooled down. Subscribers and publishers have half of the cores, the systems the other; ' +
    'a subscriber acknowledges when nothing is left to be read by the others, who would be on machines of their own.',
  options: {
    seconds: [2],
    runs: [7],
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
    kilobytes: 'memory per idle connection, kB',
  },
  compared: ['cpu', 'p99'],

  async measure(options, asked, say) {
    const rate = single(options, 'rate')
    const events = Math.ceil(single(options, 'seconds') * rate)
    const samples: Sample[] = []
    await onStage(
      chosen(asked, ['hub', 'mosquitto', 'nats', 'aedes', 'aedes-redis', 'bare', 'bare-qos1']),
      { apart: true },
      async (acts) => {
        const memory = await memoryOf(acts, say)
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
            const runs = await alternately(acts, single(options, 'runs'), async (act, run) => {
              await deliver(act, { events: Math.ceil(rate / 2), rate, subscribers })
              const { cpu, p50, p99, lost } = await deliver(act, { events, rate, subscribers })
              const { name } = act.peer
              say(`${name}: run ${run}, ${subscribers} at QoS ${qos}: ${cpu.toFixed(1)} µs, p99 ${p99} ms`)
              const figures = { cpu, p50, p99, lost, kilobytes: memory.get(name) ?? NaN }
              return { case: `${counted(subscribers, 'subscriber')}, QoS ${qos}`, system: name, run, figures }
            })
            samples.push(...runs)
          }
        }
      },
    )
    return samples
  },
}

/** Measures the kilobytes of an idle connection on each system, before the first event. */
async function memoryOf(acts: readonly Act[], say: (line: string) => void): Promise<Map<string, number>> {
  const memory = new Map<string, number>()
  for (const act of acts) {
    // The first clients do not count: they cost memory once, for compiled code and heap.
    await joinCrowd(act, { count: 200, qos: 0 })
    const { kilobytes } = await joinCrowd(act, { count: 3000, qos: 0 })
    memory.set(act.peer.name, kilobytes)
    say(`${act.peer.name}: ${kilobytes.toFixed(1)} kB per connection`)
    await act.crowd.ask('dismiss', {})
  }
  return memory
}
