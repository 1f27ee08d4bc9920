import { countCpu } from '../cost.ts'
import { enterCrowd, joinPublishers } from '../delivery.ts'
import { watchMemory } from '../memory.ts'
import { counted, type Options, type Sample, single } from '../scenario.ts'
import { type Act, onStage } from '../stage.ts'
import { type Part, roomFor } from './part.ts'

export const returningFigures = {
  served: 'all served after, s',
  servedTimes: 'times that of clean ones',
  servedCpu: 'CPU per message, µs',
  growth: 'memory growth, MiB',
  missing: 'missing',
}

const kinds = ['clean', 'persistent'] as const

/**
 * Connects many clients at once, and measures when all have a message of each topic. Persistent sessions get missed
 * messages, clean sessions subscribe and get retained values. Each kind has a fresh node in every run.
 */
export const returning: Part = async (system, options, say) => {
  const [count, livestreams] = [single(options, 'returning'), single(options, 'topics')]
  const start = (ground: Parameters<typeof system.start>[0]) => system.start(ground, roomFor(count))
  const samples: Sample[] = []
  for (let run = 1; run <= single(options, 'runs'); run++) {
    const served = await onStage([start, start], { livestreams, apart: true }, async (acts) => {
      const ways = kinds.flatMap((kind, index) => {
        const act = acts[index]
        return act ? [{ kind, act }] : []
      })
      for (const { kind, act } of ways) {
        await enterCrowd(act, { count, qos: 1, clean: kind === 'clean' })
        await act.crowd.ask('leave', { loggedOut: true })
        await joinPublishers(act, act.peer.publishers.length)
        const { acknowledged } = await act.publishers.ask('each', { seconds: single(options, 'bound') })
        say(`${system.name}: run ${run}, ${kind}: ${acknowledged} of ${livestreams} are published`)
      }
      const results: { kind: string; figures: Awaited<ReturnType<typeof serve>> }[] = []
      for (const { kind, act } of run % 2 === 0 ? ways.toReversed() : ways) {
        const figures = await serve(act, kind === 'clean', options, say)
        say(`${system.name}: run ${run}, ${kind}: ${JSON.stringify(figures)}`)
        results.push({ kind, figures })
      }
      return results
    })
    const clean = served.find(({ kind }) => kind === 'clean')?.figures.served ?? NaN
    for (const { kind, figures } of served) {
      const way = kind === 'clean' ? 'subscribe' : 'return'
      samples.push({
        case: `${counted(count, `${kind} session`)} ${way}, ${counted(livestreams, 'topic')}`,
        system: system.name,
        run,
        figures: { ...figures, servedTimes: figures.served / clean },
      })
    }
  }
  return samples
}

/** `served` is Infinity if not all messages come in time. */
async function serve(
  { peer, crowd }: Act,
  subscribes: boolean,
  options: Options,
  say: (line: string) => void,
) {
  const count = single(options, 'returning') * single(options, 'topics')
  // Garbage is no growth.
  await peer.usage({ collected: true })
  const cpuOf = await countCpu(peer)
  const watch = watchMemory(peer.pids[0] ?? 0)
  await crowd.ask('begin', { room: count })
  // If the node refuses a client, the client's messages count as `missing` below.
  const comeBack = { resume: false, atOnce: single(options, 'atonce'), subscribes }
  void crowd.ask('comeBack', comeBack).catch((error) => say(String(error)))
  const { received, ms } = await crowd.ask('finish', { count, seconds: single(options, 'bound') })
  const servedCpu = await cpuOf(received)
  const { growth } = await watch.end()
  await crowd.ask('leave', {})
  return {
    served: received < count ? Infinity : ms / 1000,
    servedCpu,
    growth: growth / 1024 ** 2,
    missing: count - received,
  }
}
