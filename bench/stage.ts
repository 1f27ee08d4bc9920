import { type Commands, startChild } from './child.ts'
import { keepApart } from './cores.ts'
import type { commands as crowd } from './load/crowd.ts'
import type { commands as publishers } from './load/publishers.ts'
import type { Build } from './node.ts'
import { type Ground, onGround, type Stop } from './peers/ground.ts'
import { startHubPeer } from './peers/hub.ts'
import { startMosquitto, startNats } from './peers/installed.ts'
import { startAedesOnRedis, startBareSockets, startFloor, startPlainAedes } from './peers/ours.ts'
import type { Peer, StartPeer } from './peers/peer.ts'
import { startHubOnRedis } from './peers/redis.ts'
import type { Asked, Sample } from './scenario.ts'

/** The systems by their names in `--peers`. */
export const systems = {
  hub: (ground) => startHubPeer(ground),
  redis: (ground) => startHubOnRedis(ground),
  mosquitto: startMosquitto,
  nats: startNats,
  aedes: startPlainAedes,
  'aedes-redis': startAedesOnRedis,
  bare: (ground) => startBareSockets(ground, 0),
  'bare-qos1': (ground) => startBareSockets(ground, 1),
  floor: (ground) => startFloor(ground),
} satisfies Record<string, StartPeer>

export type System = keyof typeof systems

/** A measured system with its load generators: subscribers (`crowd`) and publishers. */
export interface Act {
  peer: Peer
  crowd: Child<typeof crowd>
  publishers: Child<typeof publishers>
}

type Child<Asked extends Commands> = Awaited<ReturnType<typeof startChild<Asked>>>

/**
 * Starts systems with load generators, and stops them after `work`. All systems run at once, so that `work` can measure
 * them alternately. `apart`: the load generators have other cores.
 */
export async function onStage<Result>(
  starters: readonly StartPeer[],
  of: { livestreams?: number; apart?: boolean },
  work: (acts: Act[], ground: Ground) => Promise<Result>,
): Promise<Result> {
  return onGround([of.livestreams], async (ground, stops) => {
    const acts: Act[] = []
    for (const start of starters) {
      const peer = await start(ground)
      if (!peer) continue
      stops.push(peer.stop)
      const act = await actOf(peer, stops)
      if (of.apart) await keepApart(peer.pids, [act.crowd.pid, act.publishers.pid])
      acts.push(act)
    }
    return work(acts, ground)
  })
}

/** Starts load generators for a peer. Adds the functions that stop them to `stops`. */
export async function actOf(peer: Peer, stops: Stop[]): Promise<Act> {
  return { peer, ...(await startLoad(stops)) }
}

/** Starts load generators. Adds the functions that stop them to `stops`. */
export async function startLoad(stops: Stop[]): Promise<Omit<Act, 'peer'>> {
  const load = {
    crowd: await startChild<typeof crowd>('load/crowd.ts'),
    publishers: await startChild<typeof publishers>('load/publishers.ts'),
  }
  stops.push(load.crowd.stop, load.publishers.stop)
  return load
}

/** The systems in `able` that the user chose. */
export function chosen(asked: Asked, able: readonly System[]): StartPeer[] {
  const all = Object.fromEntries(able.map((name): [string, StartPeer] => [name, systems[name]]))
  return chosenOf(asked, all, (build) => (ground) => startHubPeer(ground, {}, { build }))
}

/** Those that `--peers` names; without `--peers` all. Behind the hub stands that of `--before`, which `other` starts. */
export function chosenOf<Start>(
  { peers, before }: Asked,
  all: Readonly<Record<string, Start>>,
  other: (build: Build) => Start,
): Start[] {
  const named = Object.entries(all).filter(([name]) => peers.length === 0 || peers.includes(name))
  return named.flatMap(([name, start]) => (name === 'hub' && before ? [start, other(before)] : [start]))
}

/**
 * Measures half of the runs with systems that start in this order, the other half with new ones that start in the opposite
 * order. Nodes of one commit differ by some percent for as long as they live, and the one that was started first is most
 * often the dearest (seven times three or four nodes: -2 to 7 % for each delivery, 3 % in the mean).
 */
export async function bothWays<Start>(
  starters: readonly Start[],
  runs: number,
  say: (line: string) => void,
  measure: (starters: readonly Start[], runs: number) => Promise<Sample[]>,
): Promise<Sample[]> {
  if (starters.length < 2 || runs < 2) return measure(starters, runs)
  const half = Math.ceil(runs / 2)
  const samples = await measure(starters, half)
  say('once more, with new systems in the opposite order')
  const others = await measure([...starters].reverse(), runs - half)
  return [...samples, ...others.map((sample) => ({ ...sample, run: sample.run + half }))]
}

/**
 * Calls `play` for every act in every run. Every second run has the order of the one before backwards: an act would
 * otherwise always follow the same one, and get what that leaves behind (compactions, a busy disk). After an even number
 * of runs, of any two acts each has come first as often.
 */
export async function alternately<Each, Result>(
  acts: readonly Each[],
  runs: number,
  play: (act: Each, run: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (let run = 1; run <= runs; run++) {
    const first = ((run - 1) >> 1) % acts.length
    const order = [...acts.slice(first), ...acts.slice(0, first)]
    for (const act of run % 2 === 0 ? order.reverse() : order) results.push(await play(act, run))
  }
  return results
}
