import { startChild } from '../child.ts'
import { keepApart, workAside } from '../cores.ts'
import { deliver, enterCrowd, joinPublishers, warmUp, warmUpEvents } from '../delivery.ts'
import type { commands as pageCommands } from '../load/pages.ts'
import { onGround } from '../peers/ground.ts'
import { startHubPeer } from '../peers/hub.ts'
import { type Scenario, single } from '../scenario.ts'
import { actOf, alternately } from '../stage.ts'
import { logIn } from '../user.ts'

const institution = 'urn:org:institution:75b657fb49856f7b'

/** Number of events that a node handles beside the pages before the bench measures it. */
const warmBesidePages = 1_000

export const pages: Scenario = {
  about:
    'What open pages do to subscribers: the time from publish to receipt over --subscribers, alone and while --onair on-air ' +
    'pages read every event over WebSocket and --consoles consoles ask for what their views show, at their pace. ' +
    'Alone and beside them take turns.',
  options: {
    seconds: [30],
    runs: [6],
    subscribers: [100],
    rate: [10],
    onair: [200],
    consoles: [20],
    warm: [warmUpEvents],
  },
  figures: { p50: 'p50, ms', p99: 'p99, ms', max: 'longest, ms', lost: 'lost' },
  compared: [],

  async measure(options, _asked, say) {
    const subscribers = single(options, 'subscribers')
    const rate = single(options, 'rate')
    return onGround([], async (ground, stops) => {
      const hub = await startHubPeer(ground)
      stops.push(hub.stop)
      const act = await actOf(hub, stops)
      const browsers = await startChild<typeof pageCommands>('load/pages.ts')
      stops.push(browsers.stop)
      // On machines of their own, browsers would not delay the measured subscribers.
      await workAside(browsers.pid)
      await keepApart(hub.pids, [act.crowd.pid, act.publishers.pid, browsers.pid])
      const door = { httpsPort: hub.httpsPort, ca: ground.ca }
      const token = await logIn({ ...hub, ca: ground.ca }, institution, ['subscribe', 'operate'])
      await joinPublishers(act, 1)
      await warmUp([act], single(options, 'warm'))
      const wanted = {
        onAir: single(options, 'onair'),
        consoles: single(options, 'consoles'),
        livestreams: hub.publishers.flatMap(({ livestreams }) => livestreams.map(({ id }) => id)),
      }
      // A warm-up with pages and consoles. Without it, the first runs would measure how the node compiles its code for
      // them.
      await browsers.ask('open', { door, token, ...wanted })
      await enterCrowd(act, { count: subscribers, qos: 0 })
      await deliver(act, { events: warmBesidePages, rate: 50, subscribers })
      await browsers.ask('close', undefined)
      await act.crowd.ask('dismiss', {})
      return await alternately(['alone', 'beside pages'], single(options, 'runs'), async (name, run) => {
        if (name !== 'alone') await browsers.ask('open', { door, token, ...wanted })
        // The subscribers come after the pages. Otherwise they could get events early only because they came first.
        await enterCrowd(act, { count: subscribers, qos: 0 })
        await deliver(act, { events: 5 * rate, rate, subscribers })
        const events = single(options, 'seconds') * rate
        const { p50, p99, max, lost } = await deliver(act, { events, rate, subscribers })
        const did = name === 'alone' ? '' : `, ${JSON.stringify(await browsers.ask('close', undefined))}`
        say(`run ${run}, ${name}: p50 ${p50}, p99 ${p99} ms${did}`)
        await act.crowd.ask('dismiss', {})
        return { case: name, system: 'hub', run, figures: { p50, p99, max, lost } }
      })
    })
  },
}
