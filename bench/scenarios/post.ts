import { startChild } from '../child.ts'
import { keepApart } from '../cores.ts'
import { countCpu } from '../cost.ts'
import type { commands as posterCommands } from '../load/posters.ts'
import type { Build } from '../node.ts'
import { type Ground, onGround } from '../peers/ground.ts'
import { startHubPeer } from '../peers/hub.ts'
import { startBareFastify } from '../peers/ours.ts'
import type { Peer } from '../peers/peer.ts'
import { counted, list, type Sample, type Scenario, single } from '../scenario.ts'
import { alternately, bothWays, chosenOf } from '../stage.ts'
import { logIn } from '../user.ts'

/** A system that takes events over HTTPS, with the log-ins of its publishers. */
type Door = Pick<Peer, 'address' | 'usage' | 'pids' | 'stop'> & {
  name: string
  logins: Parameters<(typeof posterCommands)['join']>[0]['logins']
}

export const post: Scenario = {
  about:
    '`POST /events/{eventName}`: publishers of ten institutions send as fast as answers come, one event at a time over ' +
    'each connection. The answer of the hub means: decided and on disk. That of bare Fastify: the shape is checked as the ' +
    'hub does, and the event is in a synced batch; there is no log-in, and nothing is sent on. Publishers have half of the ' +
    'cores, the system the other.',
  options: { events: [5000], runs: [6], connections: [20] },
  figures: {
    rate: 'events per second',
    p50: 'answered after, p50, ms',
    p99: 'p99, ms',
    cpu: 'CPU per event, µs',
    refused: 'refused',
  },
  compared: ['rate', 'p50', 'p99', 'cpu'],
  peers: ['hub', 'bare'],

  measure(options, asked, say) {
    const count = single(options, 'events')
    const most = Math.max(...list(options, 'connections'))
    const hub = (build?: Build) => (ground: Ground) => startHubDoor(ground, most, build)
    const all = chosenOf<(ground: Ground) => Promise<Door>>(asked, { hub: hub(), bare: startBareDoor }, hub)
    return bothWays(all, single(options, 'runs'), say, (starters, runs) =>
      onGround([], async (ground, stops) => {
        const samples: Sample[] = []
        const acts: { door: Door; posters: Awaited<ReturnType<typeof startPosters>> }[] = []
        for (const start of starters) {
          const door = await start(ground)
          stops.push(door.stop)
          const posters = await startPosters()
          stops.push(posters.stop)
          await keepApart(door.pids, [posters.pid])
          acts.push({ door, posters })
        }
        let present = 0
        for (const connections of list(options, 'connections')) {
          for (const { door, posters } of acts) {
            const { address, logins } = door
            await posters.ask('join', { address, logins, count: connections - present })
            // Makes the topics, and compiles the code.
            await posters.ask('flood', { count })
          }
          present = connections
          const found = await alternately(acts, runs, async ({ door, posters }, run) => {
            const cpuOf = await countCpu(door)
            const { rate, p50, p99, refused } = await posters.ask('flood', { count })
            const cpu = await cpuOf(count)
            say(
              `${door.name}: run ${run}: ${rate.toFixed(0)}/s, p99 ${p99.toFixed(1)} ms, ${refused} refused`,
            )
            const name = counted(connections, 'connection')
            return { case: name, system: door.name, run, figures: { rate, p50, p99, cpu, refused } }
          })
          samples.push(...found)
        }
        return samples
      }),
    )
  },
}

function startPosters() {
  return startChild<typeof posterCommands>('load/posters.ts')
}

/** Starts a hub with log-ins for `connections` publishers. */
async function startHubDoor(ground: Ground, connections: number, build?: Build): Promise<Door> {
  const hub = await startHubPeer(ground, {}, { build })
  const { name, usage, pids, stop, ask, httpsPort } = hub
  const address = { port: httpsPort, ca: ground.ca }
  const logins: Door['logins'] = []
  for (const { id, livestreams } of ground.institutions.slice(0, connections)) {
    const token = await logIn({ httpsPort, ask, ca: ground.ca }, id, ['publish'])
    logins.push({ token, livestreams })
  }
  return { name, usage, pids, stop, address, logins }
}

async function startBareDoor(ground: Ground): Promise<Door> {
  const { port, pid, usage, stop } = await startBareFastify(ground)
  const logins = ground.institutions.map(({ livestreams }) => ({ token: undefined, livestreams }))
  return { name: 'bare Fastify', usage, pids: [pid], stop, address: { port, ca: ground.ca }, logins }
}
