import { startChild } from '../child.ts'
import type { commands as bareSockets } from './bare-sockets-process.ts'
import type { Ground } from './ground.ts'
import { anyPublishers, type Peer } from './peer.ts'
import type { commands as plainAedes } from './plain-aedes-process.ts'

/** Aedes without anything of ours but the validation. */
export async function startPlainAedes(ground: Ground): Promise<Peer> {
  const child = await startChild<typeof plainAedes>('peers/plain-aedes-process.ts')
  const { cert, key } = ground.certificate
  const port = await child.ask('start', { cert, key, feedPath: ground.feedPath })
  return peerOf('plain Aedes', ground, port, child)
}

/** What no broker on this platform can beat. */
export async function startBareSockets(ground: Ground): Promise<Peer> {
  const child = await startChild<typeof bareSockets>('peers/bare-sockets-process.ts')
  const { cert, key } = ground.certificate
  const [institution] = ground.institutions
  const topic = `radio/${institution?.livestreams[0]?.id}/track/playing`
  return peerOf('bare sockets', ground, await child.ask('start', { cert, key, topic }), child)
}

function peerOf(
  name: Peer['name'],
  ground: Ground,
  port: number,
  { usage, stop, pid }: Pick<Peer, 'usage' | 'stop'> & { pid: number },
): Peer {
  const address = { port, ca: ground.ca }
  return { name, address, subscriber: undefined, publishers: anyPublishers(ground), usage, stop, pids: [pid] }
}
