import { warmUpEvents } from '../delivery.ts'
import type { Scenario } from '../scenario.ts'
import { chosen, type System } from '../stage.ts'
import { fanOut } from './fanout.ts'

const peers: System[] = ['hub', 'mosquitto', 'nats', 'aedes']

export const latency: Scenario = {
  about:
    'The time from publish to receipt, over all subscribers: events of 900 bytes at a steady pace over TLS. The hub ' +
    'stores every event on its disk meanwhile; the others do not wait for a disk. Subscribers and publishers have half ' +
    'of the cores, the systems the other.',
  options: {
    seconds: [5],
    runs: [6],
    subscribers: [10, 100, 1000],
    qos: [1],
    rate: [10],
    warm: [warmUpEvents],
  },
  figures: { p50: 'p50, ms', p99: 'p99, ms', max: 'longest, ms', lost: 'lost' },
  compared: ['p50', 'p99'],
  peers,

  measure: (options, asked, say) => fanOut(chosen(asked, peers), options, say),
}
