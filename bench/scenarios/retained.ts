import { countCpu } from '../cost.ts'
import { enterCrowd, joinPublishers } from '../delivery.ts'
import { counted, list, type Sample, type Scenario, single } from '../scenario.ts'
import { type Act, alternately, bothWays, chosen, onStage, type System } from '../stage.ts'

const peers: System[] = ['hub', 'mosquitto', 'nats', 'aedes']

export const retained: Scenario = {
  about:
    'A new subscriber of `radio/#` gets what is playing on every livestream: the time from its connection to the last ' +
    'of the retained messages.',
  options: { runs: [6], livestreams: [10_000], qos: [0, 1] },
  figures: {
    ms: 'all received after, ms',
    cpu: 'CPU per message, µs',
    missing: 'missing',
  },
  compared: ['ms', 'cpu'],
  peers,

  measure: (options, asked, say) =>
    bothWays(chosen(asked, peers), single(options, 'runs'), say, async (starters, runs) => {
      const samples: Sample[] = []
      for (const livestreams of list(options, 'livestreams')) {
        await onStage(starters, { livestreams }, async (acts) => {
          for (const act of acts) {
            await fill(act)
            say(`${act.peer.name}: ${livestreams} livestreams are playing`)
          }
          for (const qos of list(options, 'qos')) {
            const found = await alternately(acts, runs, async (act, run) => {
              const figures = await arrive(act, livestreams, qos)
              say(`${act.peer.name}: run ${run}, QoS ${qos}: ${figures.ms.toFixed(0)} ms`)
              return {
                case: `${counted(livestreams, 'livestream')}, QoS ${qos}`,
                system: act.peer.name,
                run,
                figures,
              }
            })
            samples.push(...found)
          }
        })
      }
      return samples
    }),
}

/** Publishes one event for every livestream. */
async function fill(act: Act): Promise<void> {
  // One publisher for each institution.
  await joinPublishers(act, act.peer.publishers.length)
  await act.publishers.ask('each', {})
  await new Promise((resolve) => setTimeout(resolve, 500))
}

async function arrive(act: Act, count: number, qos: number) {
  const { peer, crowd } = act
  await crowd.ask('begin', { room: count })
  const cpuOf = await countCpu(peer)
  const joined = enterCrowd(act, { count: 1, qos })
  const { received, ms } = await crowd.ask('finish', { count })
  const cpu = await cpuOf(count)
  await joined
  await crowd.ask('dismiss', {})
  return { ms, cpu, missing: count - received }
}
