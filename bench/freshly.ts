import { keepApart } from './cores.ts'
import { deliver, enterCrowd, joinPublishers, warmUp } from './delivery.ts'
import { onGround } from './peers/ground.ts'
import { startBareSockets } from './peers/ours.ts'
import type { Peer, StartPeer } from './peers/peer.ts'
import { type Act, alternately, startLoad } from './stage.ts'

/**
 * Starts each system anew for every run, and calls `play`. Only one runs at a time, and the first changes with every
 * run. The load generators stay the same, and are warm after `warm` events: cold ones would measure how they compile
 * their own code.
 */
export async function freshly<Result>(
  starters: readonly StartPeer[],
  { runs, warm }: { runs: number; warm: number },
  play: (act: Act, run: number) => Promise<Result[]>,
): Promise<Result[]> {
  return onGround([], async (ground, stops) => {
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
    if (warm > 0) await on(await startBareSockets(ground, 1), (act) => warmLoad(act, warm))
    const results = await alternately(starters, runs, async (start, run) => {
      const peer = await start(ground)
      return peer ? on(peer, (act) => play(act, run)) : []
    })
    return results.flat()
  })
}

/** Lets the load generators do once what they do later: flood, and keep a pace. */
async function warmLoad(act: Act, events: number): Promise<never[]> {
  const paced = Math.ceil(events / 7)
  await joinPublishers(act, 1)
  await warmUp([act], events - paced)
  await enterCrowd(act, { count: 1, qos: 1 })
  await deliver(act, { events: paced, rate: 1000, subscribers: 1 })
  return []
}
