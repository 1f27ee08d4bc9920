import { deliver, joinCrowd, joinPublishers, warmUp, warmUpEvents } from '../delivery.ts'
import { counted, list, type Sample, type Scenario, single } from '../scenario.ts'
import { alternately, chosen, onStage, type System } from '../stage.ts'

const peers: System[] = ['hub', 'mosquitto', 'nats', 'aedes']

export const latency: Scenario = {
  about:
    'The time from publish to receipt, over all subscribers: events of 900 bytes at a steady pace over TLS. The hub ' +
    'stores every event on its disk meanwhile; the others do not wait for a disk. Subscribers and publishers have half ' +
    'of the cores, the systems the other.',
  options: {
    seconds: [5],
    runs: [7],
    subscribers: [10, 100, 1000],
    qos: [1],
    rate: [10],
    warm: [warmUpEvents],
  },
  figures: { p50: 'p50, ms', p99: 'p99, ms', max: 'longest, ms', lost: 'lost' },
  compared: ['p50', 'p99'],
  peers,

  async measure(options, asked, say) {
    const rate = single(options, 'rate')
    const events = Math.ceil(single(options, 'seconds') * rate)
    const samples: Sample[] = []
    await onStage(chosen(asked, peers), { apart: true }, async (acts) => {
      for (const act of acts) await joinPublishers(act, 1)
      await warmUp(acts, single(options, 'warm'))
      let present = 0
      for (const subscribers of list(options, 'subscribers')) {
        for (const act of acts) await joinCrowd(act, { count: subscribers - present, qos: 0 })
        present = subscribers
        for (const qos of list(options, 'qos')) {
          for (const act of acts) {
            await act.crowd.ask('change', { qos })
            await deliver(act, { events: 50, rate: 50, subscribers })
          }
          const runs = await alternately(acts, single(options, 'runs'), async (act, run) => {
            const { p50, p99, max, lost } = await deliver(act, { events, rate, subscribers })
            say(`${act.peer.name}: run ${run}, ${subscribers} at QoS ${qos}: p50 ${p50}, p99 ${p99} ms`)
            const figures = { p50, p99, max, lost }
            return {
              case: `${counted(subscribers, 'subscriber')}, QoS ${qos}`,
              system: act.peer.name,
              run,
              figures,
            }
          })
          samples.push(...runs)
        }
      }
    })
    return samples
  },
}
