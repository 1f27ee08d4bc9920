import { join } from 'node:path'
import type { Build } from '../node.ts'
import type { Ground } from '../peers/ground.ts'
import { startHubPeer } from '../peers/hub.ts'
import { startAedesOnRedis } from '../peers/ours.ts'
import type { Peer } from '../peers/peer.ts'
import { startHubOnRedis, startRedis } from '../peers/redis.ts'
import type { Options, Sample } from '../scenario.ts'
import type { Act } from '../stage.ts'

type Env = Record<string, string>

/** A system to measure. `start` resolves with undefined if not installed. */
export interface System {
  name: Peer['name']
  /** Starts a node on a store of its own. `env`: more variables, for hubs. */
  start(ground: Ground, env?: Env): Promise<Peer | undefined>
}

/** A hub on one kind of store. `open` opens the store without a node. */
export interface Store extends System {
  /** The node of another commit. */
  build?: Build
  open(ground: Ground, name: string): Promise<Place | undefined>
}

/** A store that outlives its node. */
interface Place {
  env: Env
  stop(): Promise<void>
}

const files: Store = {
  name: 'hub',
  start: (ground, env) => startHubPeer(ground, env),
  async open(ground, name) {
    return { env: { HUB_DATA_DIR: join(ground.directory, name) }, stop: async () => {} }
  },
}

export const stores: Record<'hub' | 'redis', Store> = {
  hub: files,
  redis: { name: 'hub on Redis', start: startHubOnRedis, open: startRedis },
}

/** The hub of another commit on its embedded store. */
export function storeBefore(build: Build): Store {
  return { ...files, name: 'before', build, start: (ground, env) => startHubPeer(ground, env, { build }) }
}

/** The systems that store sessions. The bench measures their stores too. */
export const systems: Record<string, System> = {
  ...stores,
  'aedes-redis': { name: 'Aedes on Redis', start: (ground) => startAedesOnRedis(ground) },
}

/** One comparison of the scenario, for one system. */
export type Part<Of extends System = System> = (
  system: Of,
  options: Options,
  say: (line: string) => void,
) => Promise<Sample[]>

/** Variables that let one credential have this many sessions. */
export function roomFor(sessions: number): Env {
  return { HUB_MAX_SESSIONS_PER_CREDENTIAL: String(sessions + 1) }
}

/** Makes offline sessions on `radio/#` until there are `count`, or for `seconds`. Returns how many there are then. */
export async function leaveBehind(
  { peer, crowd }: Act,
  of: { count: number; seconds: number },
): Promise<number> {
  const first = (await peer.sessions?.()) ?? 0
  const joining = { address: peer.address, login: peer.subscriber, filter: 'radio/#', qos: 1 }
  await crowd.ask('leaveBehind', { ...joining, first, count: of.count - first, seconds: of.seconds })
  return (await peer.sessions?.()) ?? 0
}
