import { warmUpEvents } from '../delivery.ts'
import { hubWithWorkers } from '../peers/workers.ts'
import type { Scenario } from '../scenario.ts'
import { fanOut } from './fanout.ts'

/** The systems: a hub with one process, and one with two workers (`HUB_WORKERS`). */
const starters = [hubWithWorkers(2, 'two workers'), hubWithWorkers(1, 'one worker')]

export const workers: Scenario = {
  about:
    'What a second worker costs: as `fanout`, on a Redis each, with one process and with two workers. CPU time is that of ' +
    'all processes of the hub, without Redis. Both workers read every event, and each brings it to its half of the ' +
    'subscribers. The systems have half of the cores: the figures say what the work costs, and not how much two cores do.',
  options: {
    seconds: [2],
    runs: [6],
    subscribers: [1000],
    qos: [0, 1],
    rate: [10],
    warm: [warmUpEvents],
  },
  figures: {
    perSecond: 'deliveries per CPU second',
    cpu: 'CPU per delivery, µs',
    p50: 'p50, ms',
    p99: 'p99, ms',
    lost: 'lost',
  },
  subject: 'two workers',
  compared: ['perSecond', 'p99'],

  async measure(options, _asked, say) {
    const samples = await fanOut(starters, options, say)
    return samples.map((sample) => ({
      ...sample,
      figures: { perSecond: Math.round(1e6 / (sample.figures.cpu ?? Number.NaN)), ...sample.figures },
    }))
  },
}
