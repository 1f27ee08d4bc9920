import { countCpu } from '../cost.ts'
import { joinCrowd } from '../delivery.ts'
import { freshly } from '../freshly.ts'
import { counted, type Sample, type Scenario, single } from '../scenario.ts'
import { chosen, type System } from '../stage.ts'

const peers: System[] = ['hub', 'mosquitto', 'nats', 'aedes', 'bare']
/**
 * The first connections do not count: they cost memory once, for compiled code and heap, and a node gives back 200 MB of
 * its start meanwhile.
 */
const first = 1000

export const idle: Scenario = {
  about:
    `What a subscriber costs while nothing happens: resident memory for each connection after the first ${first}, ` +
    'without garbage, on systems that are started anew in every run.',
  options: { runs: [6], first: [first], connections: [3000] },
  figures: { kilobytes: 'memory per idle connection, kB', cpu: 'CPU per connection, µs' },
  compared: ['kilobytes', 'cpu'],
  peers,

  measure(options, asked, say) {
    const count = single(options, 'connections')
    // The figures say nothing of the load generators, which may be cold.
    const times = { runs: single(options, 'runs'), warm: 0 }
    return freshly(chosen(asked, peers), times, async (act, run): Promise<Sample[]> => {
      const { name } = act.peer
      await joinCrowd(act, { count: single(options, 'first'), qos: 0 })
      const cpuOf = await countCpu(act.peer)
      const { kilobytes } = await joinCrowd(act, { count, qos: 0 })
      const cpu = await cpuOf(count)
      say(`${name}: run ${run}: ${kilobytes.toFixed(1)} kB per connection`)
      return [{ case: counted(count, 'connection'), system: name, run, figures: { kilobytes, cpu } }]
    })
  },
}
