import { joinPublishers } from '../delivery.ts'
import { residentMemory } from '../memory.ts'
import { startNode } from '../node.ts'
import { type Ground, onGround } from '../peers/ground.ts'
import { nodeEnv, startHubPeer } from '../peers/hub.ts'
import { counted, type Options, single } from '../scenario.ts'
import { actOf, alternately } from '../stage.ts'
import { leaveBehind, type Part, roomFor, type Store } from './part.ts'

export const startingFigures = {
  ready: 'ready after, s',
  readyMore: 'later than with an empty store, s',
  readyMemory: 'memory then, MB',
}

/** Measures the start of a node on a full store and on an empty one. */
export const starting: Part<Store> = async (store, options, say) => {
  return onGround([], async (ground, stops) => {
    const places = []
    for (const isFull of [false, true]) {
      const place = await store.open(ground, isFull ? 'full' : 'empty')
      if (!place) return []
      stops.push(place.stop)
      const env = { ...place.env, ...envOf(ground, options) }
      places.push({
        isFull,
        env,
        name: await fill(ground, { env, build: store.build }, isFull ? options : undefined),
      })
      say(`${store.name}: ${places.at(-1)?.name}`)
    }
    const starts = await alternately(places, single(options, 'runs'), async ({ isFull, env, name }, run) => {
      const node = await startNode(env, { alone: true, build: store.build })
      const memory = await residentMemory(node.pid)
      await node.stop()
      say(`${store.name}: run ${run}, ${name}: ready after ${node.readyMs.toFixed(0)} ms`)
      return { isFull, name, run, ready: node.readyMs / 1000, readyMemory: (memory?.now ?? NaN) / 1e6 }
    })
    return starts.map(({ isFull, name, run, ready, readyMemory }) => {
      const empty = starts.find((other) => !other.isFull && other.run === run)?.ready ?? NaN
      const figures = { ready, ...(isFull && { readyMore: ready - empty }), readyMemory }
      return { case: `start: ${name}`, system: store.name, run, figures }
    })
  })
}

/** Fills the store, and describes its content. Without `options`, the store stays empty. */
async function fill(
  ground: Ground,
  { env, build }: { env: Record<string, string>; build: Store['build'] },
  options?: Options,
): Promise<string> {
  const peer = await startHubPeer(ground, env, { build })
  const stops = [peer.stop]
  try {
    if (!options) return 'an empty store'
    const seconds = single(options, 'bound')
    const act = await actOf(peer, stops)
    await joinPublishers(act, peer.publishers.length)
    // Events first: they may cost more once there are sessions.
    const flood = { count: single(options, 'history'), inFlight: 100, lasts: seconds, within: seconds }
    const { acknowledged } = await act.publishers.ask('flood', flood)
    const sessions = await leaveBehind(act, { count: single(options, 'sessions'), seconds })
    return `${counted(sessions, 'session')}, ${counted(acknowledged, 'event')} before`
  } finally {
    for (const stop of stops.reverse()) await stop()
  }
}

/** Variables that make room for sessions and history. */
function envOf(ground: Ground, options: Options): Record<string, string> {
  const count = single(options, 'history')
  const livestreams = ground.institutions.reduce((sum, each) => sum + each.livestreams.length, 0)
  return {
    ...nodeEnv(ground),
    ...roomFor(single(options, 'sessions')),
    HUB_HISTORY: String(Math.max(1, Math.ceil(count / livestreams))),
    HUB_HISTORY_BYTES: String(Math.max(1, count) * 2048),
  }
}
