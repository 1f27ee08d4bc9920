import type { Usage } from '../child.ts'
import { keepApart } from '../cores.ts'
import { deliver, joinCrowd, warmUp } from '../delivery.ts'
import type { Peer } from '../peers/peer.ts'
import { counted, type Sample, single } from '../scenario.ts'
import { type Act, onStage } from '../stage.ts'
import { type Part, roomFor } from './part.ts'

export const connectedFigures = {
  delivery: 'CPU per delivery, µs',
  deliveryTimes: 'times that to clean ones',
  deliveryRedis: 'CPU of Redis per delivery, µs',
  deliveryIdle: 'CPU of an idle node per delivery, µs',
  deliveryLost: 'lost',
}

/**
 * Measures a delivery at QoS 1 to connected clean and persistent sessions of one node. Each kind has a livestream of
 * its own. On Redis, a second node without clients runs too.
 */
export const connected: Part = async (system, options, say) => {
  const count = single(options, 'connected')
  const rate = single(options, 'rate')
  const events = Math.ceil(rate * single(options, 'seconds'))
  const start = (of: Parameters<typeof system.start>[0]) => system.start(of, roomFor(count))
  return onStage([start], { apart: true }, async ([act]) => {
    if (!act) return []
    const { peer } = act
    const idle = await peer.startBeside?.()
    try {
      if (idle) await keepApart(idle.pids, [])
      const kinds = ['clean', 'persistent'].map((kind, index) => {
        const { login, livestreams } = peer.publishers[index] ?? { login: undefined, livestreams: [] }
        return { kind, login, livestreams: livestreams.slice(0, 1) }
      })
      await publishFor(act, kinds)
      await warmUp([act], single(options, 'warm'))
      for (const { kind, livestreams } of kinds) {
        const filter = `radio/${livestreams[0]?.id}/#`
        await joinCrowd(act, { count, qos: 1, clean: kind === 'clean', filter })
      }
      const samples: Sample[] = []
      // The first run does not count.
      for (let run = 0; run <= single(options, 'runs'); run++) {
        const costs: { kind: string; figures: Awaited<ReturnType<typeof costOf>> }[] = []
        for (const kind of run % 2 === 0 ? kinds.toReversed() : kinds) {
          await publishFor(act, [kind])
          const figures = await costOf(act, idle, { events, rate, subscribers: count })
          say(`${system.name}: run ${run}, ${kind.kind}: ${JSON.stringify(figures)}`)
          costs.push({ kind: kind.kind, figures })
        }
        const clean = costs.find(({ kind }) => kind === 'clean')?.figures.delivery ?? NaN
        for (const { kind, figures } of run === 0 ? [] : costs) {
          const name = `${counted(count, `connected ${kind} session`)}, QoS 1`
          const all = { ...figures, deliveryTimes: figures.delivery / clean }
          samples.push({ case: name, system: system.name, run, figures: all })
        }
      }
      return samples
    } finally {
      await idle?.stop()
    }
  })
}

async function publishFor({ peer, publishers }: Act, logins: Peer['publishers']): Promise<void> {
  await publishers.ask('leave', {})
  await publishers.ask('join', { address: peer.address, count: logins.length, logins })
}

async function costOf(act: Act, idle: Peer | undefined, of: Parameters<typeof deliver>[1]) {
  const others = [act.peer.redis, idle]
  const usages = () => Promise.all(others.map((other) => other?.usage()))
  const before = await usages()
  const { cpu, lost, received } = await deliver(act, of)
  const after = await usages()
  const [redis, node] = others.map((_, index) => cpuBetween(before[index], after[index], received))
  return {
    delivery: cpu,
    ...(redis !== undefined && { deliveryRedis: redis }),
    ...(node !== undefined && { deliveryIdle: node }),
    deliveryLost: lost,
  }
}

/** CPU time per delivery, microseconds. */
function cpuBetween(before: Usage | undefined, after: Usage | undefined, deliveries: number) {
  return before && after ? ((after.cpuMs - before.cpuMs) * 1000) / deliveries : undefined
}
