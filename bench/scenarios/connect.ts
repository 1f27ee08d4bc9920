import { countCpu } from '../cost.ts'
import { joinCrowd, untilQuiet } from '../delivery.ts'
import { counted, list, type Sample, type Scenario, single } from '../scenario.ts'
import { alternately, bothWays, chosen, onStage, type System } from '../stage.ts'

const peers: System[] = ['hub', 'mosquitto', 'nats', 'aedes', 'bare']

export const connect: Scenario = {
  about:
    'All subscribers lose their connection and come back: time until the last one has its SUBACK. Once with full TLS ' +
    'handshakes, once with the sessions of before. The load generator does the other half of each handshake. ' +
    'Bare sockets accept everybody: they are the limit.',
  options: { runs: [6], subscribers: [1000, 3000], atonce: [50] },
  figures: {
    seconds: 'all served after, s',
    p50: 'half of them, s',
    p99: '99 % of them, s',
    resumed: 'TLS sessions resumed, %',
    cpu: 'CPU per client, µs',
  },
  compared: ['seconds', 'p50', 'p99', 'cpu'],
  peers,

  measure(options, asked, say) {
    const atOnce = single(options, 'atonce')
    return bothWays(chosen(asked, peers), single(options, 'runs'), say, (starters, runs) =>
      onStage(starters, {}, async (acts) => {
        const samples: Sample[] = []
        let present = 0
        for (const subscribers of list(options, 'subscribers')) {
          for (const act of acts) await joinCrowd(act, { count: subscribers - present, qos: 0 })
          present = subscribers
          for (const resume of [false, true]) {
            const found = await alternately(acts, runs, async ({ peer, crowd }, run) => {
              await crowd.ask('leave', {})
              // The end of the former connections must not count.
              await untilQuiet(peer)
              const cpuOf = await countCpu(peer)
              const back = await crowd.ask('comeBack', { resume, atOnce })
              const cpu = await cpuOf(subscribers)
              say(
                `${peer.name}: run ${run}, ${subscribers}, ${back.resumed} resumed: ${back.ms.toFixed(0)} ms`,
              )
              const figures = {
                seconds: back.ms / 1000,
                p50: back.p50 / 1000,
                p99: back.p99 / 1000,
                resumed: (back.resumed / subscribers) * 100,
                cpu,
              }
              const way = resume ? 'resumed' : 'full handshakes'
              return { case: `${counted(subscribers, 'client')}, ${way}`, system: peer.name, run, figures }
            })
            samples.push(...found)
          }
        }
        return samples
      }),
    )
  },
}
