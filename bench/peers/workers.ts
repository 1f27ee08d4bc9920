import type { Usage } from '../child.ts'
import { ofThreads, usageOfProcess } from './installed.ts'
import type { Peer, PeerName, StartPeer } from './peer.ts'
import { startHubOnRedis } from './redis.ts'

/** A hub on a Redis of its own, with so many workers. Its usage is that of all its processes, without Redis. */
export function hubWithWorkers(count: number, name: PeerName): StartPeer {
  return async (ground) => {
    // The code of the bench would take the messages of the primary for its own.
    const hub = await startHubOnRedis(ground, { HUB_WORKERS: String(count) }, { alone: true })
    return hub && { ...(await withAllProcesses(hub)), name }
  }
}

/** The same hub, with its workers in its usage and its process ids. */
export async function withAllProcesses(hub: Peer): Promise<Peer> {
  const [pid = 0] = hub.pids
  const workers = await childrenOf(pid)
  return {
    ...hub,
    pids: [...hub.pids, ...workers],
    async usage(): Promise<Usage> {
      const each = await Promise.all([pid, ...workers].map(usageOfProcess))
      const sum = (of: keyof Usage) => each.reduce((total, usage) => total + usage[of], 0)
      return { cpuMs: sum('cpuMs'), bytes: sum('bytes') }
    },
  }
}

async function childrenOf(pid: number): Promise<number[]> {
  const lists = await ofThreads(pid, 'children')
  return lists.flatMap((text) => (text.match(/\d+/g) ?? []).map(Number))
}
