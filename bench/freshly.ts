import { keepApart } from './cores.ts'
import { deliver, enterCrowd, joinPublishers, warmUp } from './delivery.ts'
import { prepareGround } from './peers/ground.ts'
import { startBareSockets } from './peers/ours.ts'
import type { Peer, StartPeer } from './peers/peer.ts'
import { type Act, alternately, startLoad } from './stage.ts'

/**
 * Starts each system anew for every run, and calls `play`. Only one runs at a time, and the first changes with every
 * run. The load generators stay the same, and are warm: cold ones would measure how they compile their own code.
 */
export async function freshly<Result>(
  starters: readonly StartPeer[],
  runs: number,
  play: (act: Act, run: number) => Promise<Result[]>,
): Promise<Result[]> {
  const ground = await prepareGround()
  const stops: (() => Promise<void>)[] = [ground.remove]
  try {
    const load = await startLoad(stops)
    const on = async (peer: Peer, work: (act: Act) => Promise<Result[]>) => {
      try {
        await keepApart(peer.pids, [load.crowd.pid, load.publishers.pid])
        return await work({ peer, ...load })
      } finally {
        await load.crowd.ask('dismiss', {})
        await load.publishers.ask('leave', {})
        await peer.stop()
      }
    }
    await on(await startBareSockets(ground, 1), warmLoad)
    const results = await alternately(starters, runs, async (start, run) => {
      const peer = await start(ground)
      return peer ? on(peer, (act) => play(act, run)) : []
    })
    return results.flat()
  } finally {
    for (const stop of stops.reverse()) await stop()
  }
}

/** Lets the load generators do once what they do later: flood, and keep a pace. */
async function warmLoad(act: Act): Promise<never[]> {
  await joinPublishers(act, 1)
  await warmUp([act], 6000)
  await enterCrowd(act, { count: 1, qos: 1 })
  await deliver(act, { events: 1000, rate: 1000, subscribers: 1 })
  return []
}
