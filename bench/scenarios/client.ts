import { startChild } from '../child.ts'
import { countCpu } from '../cost.ts'
import type { commands, Way } from '../load/library-publisher.ts'
import { onGround } from '../peers/ground.ts'
import { startHubPeer } from '../peers/hub.ts'
import { counted, type Scenario, single } from '../scenario.ts'
import { alternately } from '../stage.ts'

const ways = ['mqtt, no feedback', 'mqtt, parses feedback', 'client library'] as const satisfies Way[]

export const client: Scenario = {
  about:
    'What a publisher itself pays for the client library: the CPU time of its process per event, beside the package ' +
    '`mqtt` alone. All three write JSON and publish at QoS 1 over TLS to one hub, in turn, so many events at a time: ' +
    'the next ones when all are answered. One never reads the feedback, one subscribes to it and parses each report, ' +
    'and the library matches each report with its event. Every publisher is a process of its own with an institution ' +
    'of its own.',
  options: { events: [3_000], runs: [16], inflight: [50], warm: [8_000] },
  figures: { cpu: 'CPU per event, µs' },
  subject: 'client library',
  compared: ['cpu'],

  async measure(options, _peers, say) {
    const [count, inFlight] = [single(options, 'events'), single(options, 'inflight')]
    return onGround([], async (ground, stops) => {
      const hub = await startHubPeer(ground)
      stops.push(hub.stop)
      const publishers = []
      for (const [index, way] of ways.entries()) {
        const child = await startChild<typeof commands>('load/library-publisher.ts')
        stops.push(child.stop)
        const { login, livestreams: [livestream] = [] } = hub.publishers[index] ?? {}
        if (!login || !livestream) throw new Error('too few institutions')
        await child.ask('join', { way, address: hub.address, login, livestream })
        await child.ask('flood', { count: single(options, 'warm'), inFlight })
        publishers.push({ way, ...child })
      }
      return alternately(publishers, single(options, 'runs'), async ({ way, ask, usage }, run) => {
        const cpuOf = await countCpu({ usage })
        await ask('flood', { count, inFlight })
        const cpu = await cpuOf(count)
        say(`${way}: run ${run}: ${cpu.toFixed(1)} µs`)
        return { case: `${counted(inFlight, 'event')} in flight`, system: way, run, figures: { cpu } }
      })
    })
  },
}
