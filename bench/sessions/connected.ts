import { keepApart } from '../cores.ts'
import { countCpu } from '../cost.ts'
import { deliver, joinCrowd, warmUp } from '../delivery.ts'
import type { Peer } from '../peers/peer.ts'
import { counted, single } from '../scenario.ts'
import { type Act, alternately, onStage } from '../stage.ts'
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
      const play = async (kind: (typeof kinds)[number], run: number) => {
        await publishFor(act, [kind])
        const figures = await costOf(act, idle, { events, rate, subscribers: count })
        say(`${system.name}: run ${run}, ${kind.kind}: ${JSON.stringify(figures)}`)
        return { kind: kind.kind, run, figures }
      }
      // The first turn of each does not count.
      for (const kind of kinds) await play(kind, 0)
      const costs = await alternately(kinds, single(options, 'runs'), play)
      return costs.map(({ kind, run, figures }) => {
        const clean = costs.find((other) => other.kind === 'clean' && other.run === run)?.figures.delivery
        return {
          case: `${counted(count, `connected ${kind} session`)}, QoS 1`,
          system: system.name,
          run,
          figures: { ...figures, deliveryTimes: figures.delivery / (clean ?? NaN) },
        }
      })
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
  const costs = await Promise.all(others.map((other) => other && countCpu(other)))
  const { cpu, lost, received } = await deliver(act, of)
  const [redis, node] = await Promise.all(costs.map((cpuOf) => cpuOf?.(received)))
  return {
    delivery: cpu,
    ...(redis !== undefined && { deliveryRedis: redis }),
    ...(node !== undefined && { deliveryIdle: node }),
    deliveryLost: lost,
  }
}
