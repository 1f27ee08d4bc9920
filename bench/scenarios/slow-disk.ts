import { startChild } from '../child.ts'
import { deliver, enterCrowd, joinPublishers } from '../delivery.ts'
import { freshly } from '../freshly.ts'
import type { commands as crowdCommands } from '../load/crowd.ts'
import type { Delays } from '../load/delays.ts'
import type { Build } from '../node.ts'
import { startHubPeer } from '../peers/hub.ts'
import type { StartPeer } from '../peers/peer.ts'
import { type Sample, type Scenario, single } from '../scenario.ts'
import { onSlowDisk } from '../slow-disk.ts'
import { chosenOf } from '../stage.ts'

/** How long acknowledgements are awaited after the last event, seconds. */
const patienceSeconds = 60

export const slowDisk: Scenario = {
  about:
    'On a disk whose syncs take --delay milliseconds longer: --rate events a second to clean sessions, which do not wait ' +
    'for the disk, and to persistent ones, which do, both at QoS 1; and until PUBACK. What the hub counts as above its ' +
    'budget of 220 ms stands beside the events. The load generators play --load events before.',
  options: { runs: [5], delay: [300], seconds: [10], rate: [20], sessions: [10], load: [7000] },
  figures: {
    p50: 'p50, ms',
    p99: 'p99, ms',
    lost: 'lost',
    events: 'events',
    exceeded: 'counted above the budget',
  },
  compared: ['p50', 'p99'],
  peers: ['hub'],

  measure(options, asked, say) {
    const command = onSlowDisk(single(options, 'delay'))
    const hub =
      (build?: Build): StartPeer =>
      (ground) =>
        startHubPeer(ground, {}, { command, build })
    const rate = single(options, 'rate')
    const count = Math.ceil(single(options, 'seconds') * rate)
    const subscribers = single(options, 'sessions')
    const times = { runs: single(options, 'runs'), warm: single(options, 'load') }
    return freshly(chosenOf(asked, { hub: hub() }, hub), times, async (act, run): Promise<Sample[]> => {
      const { peer, crowd, publishers } = act
      const persistent = await startChild<typeof crowdCommands>('load/crowd.ts')
      try {
        const login = { address: peer.address, login: peer.subscriber }
        await joinPublishers(act, 1)
        await enterCrowd(act, { count: subscribers, qos: 1 })
        await persistent.ask('join', {
          ...login,
          count: subscribers,
          filter: 'radio/#',
          qos: 1,
          clean: false,
        })
        // Compiles the code.
        await deliver(act, { events: 5 * rate, rate, subscribers })
        const before = (await peer.exceeded?.()) ?? 0
        const room = count * subscribers
        for (const each of [crowd, persistent]) await each.ask('begin', { room, fresh: true })
        await publishers.ask('pace', { count, intervalMs: 1000 / rate })
        const settled = await publishers.ask('settle', { count, seconds: patienceSeconds })
        const toClean = await crowd.ask('finish', { count: room })
        const toPersistent = await persistent.ask('finish', { count: room })
        const exceeded = ((await peer.exceeded?.()) ?? 0) - before
        const figures = {
          'to clean sessions': { ...delaysOf(toClean), lost: room - toClean.received },
          'to persistent sessions': { ...delaysOf(toPersistent), lost: room - toPersistent.received },
          'until PUBACK': {
            ...delaysOf(settled),
            lost: count - settled.acknowledged,
            events: count,
            exceeded,
          },
        }
        say(`${peer.name}: run ${run}: ${JSON.stringify(figures)}`)
        return Object.entries(figures).map(([name, of]) => ({
          case: `${single(options, 'delay')} ms slower, ${name}`,
          system: peer.name,
          run,
          figures: of,
        }))
      } finally {
        await persistent.stop()
      }
    })
  },
}

function delaysOf({ p50, p99 }: Delays) {
  return { p50, p99 }
}
