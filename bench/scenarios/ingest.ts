import { flood, joinCrowd, joinPublishers } from '../delivery.ts'
import { counted, list, type Sample, type Scenario, single } from '../scenario.ts'
import { alternately, bothWays, chosen, onStage, type System } from '../stage.ts'

const peers: System[] = ['hub', 'redis', 'mosquitto', 'nats', 'aedes', 'aedes-redis', 'floor']

export const ingest: Scenario = {
  about:
    'How many events are taken, validated, stored and delivered to one subscriber. Publishers at QoS 1 send as fast as ' +
    'acknowledgements come, 100 events on their way over all of them. CPU time is that of the system until it is quiet again, without that of a Redis. The acknowledgement of the hub means: decided ' +
    'and on disk, its own or that of Redis (`appendfsync always`); that of Aedes on Redis: retained and queued on such a ' +
    'Redis, because its validation waits for that, while what is published past the validation is acknowledged before; ' +
    'that of the floor: checked by the schema and on disk; that of the others: received.',
  options: { events: [10_000], runs: [6], publishers: [1, 10, 100], inflight: [100] },
  figures: {
    rate: 'events delivered per second',
    p50: 'acknowledged after, p50, ms',
    p99: 'p99, ms',
    cpu: 'CPU per event, µs',
    lost: 'lost',
  },
  compared: ['rate', 'p50', 'p99', 'cpu'],
  peers,

  measure(options, asked, say) {
    const count = single(options, 'events')
    const inFlight = single(options, 'inflight')
    return bothWays(chosen(asked, peers), single(options, 'runs'), say, (starters, runs) =>
      onStage(starters, {}, async (acts) => {
        const samples: Sample[] = []
        for (const act of acts) await joinCrowd(act, { count: 1, qos: 1 })
        for (const publishers of list(options, 'publishers')) {
          for (const act of acts) {
            await joinPublishers(act, publishers)
            await flood(act, { count: Math.min(count, 2000), inFlight })
          }
          const found = await alternately(acts, runs, async (act, run) => {
            const figures = await flood(act, { count, inFlight })
            const { name } = act.peer
            const { rate, p99, lost } = figures
            say(
              `${name}: run ${run}, ${publishers} publishers: ${rate.toFixed(0)}/s, ${p99} ms, ${lost} lost`,
            )
            return { case: counted(publishers, 'publisher'), system: name, run, figures }
          })
          samples.push(...found)
        }
        return samples
      }),
    )
  },
}
