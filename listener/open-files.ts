import { readFile } from 'node:fs/promises'
import type { Log } from '../telemetry/log.ts'
import type { Room } from './connection-bounds.ts'

/** The share of the open files for the store, Redis and all else that is no connection, and the most they need. */
const kept = { share: 1 / 4, most: 2_048 }
/** The share of all open files that connections to webhooks and plugin targets may take. */
const outgoingShare = 1 / 8
/** The share of the room that one listener may take: a flood of one leaves the other the rest. */
const shareOfOne = 3 / 4

/**
 * Lowers the wanted numbers of connections to what the open files allow. A flood of connections could otherwise leave
 * the store no file to open, and the node could take no event. Logs a warning if all processes together have room for
 * fewer incoming connections than wanted.
 */
export async function connectionsWithinOpenFiles(
  wanted: {
    /** Connections of each of the two listeners (MQTT, HTTPS), of all processes together. */
    incoming: number
    /** Connections of one process to webhooks and plugin targets. */
    outgoing: number
    /** How many processes share the incoming connections: each has open files of its own. */
    processes: number
  },
  log: Pick<Log, 'warn'>,
  openFiles: () => Promise<number> = allowedOpenFiles,
): Promise<{ room: Room; outgoing: number }> {
  const allowed = await openFiles()
  const outgoing = Math.min(wanted.outgoing, Math.floor(allowed * outgoingShare))
  const all = Math.floor(allowed - Math.min(allowed * kept.share, kept.most) - outgoing)
  const room = { ofOne: Math.floor(all * shareOfOne), all, open: 0 }
  const together = { room: wanted.processes * room.ofOne, roomOfBoth: wanted.processes * room.all }
  if (wanted.incoming > together.room || 2 * wanted.incoming > together.roomOfBoth) {
    log.warn(
      { wanted: wanted.incoming, openFiles: allowed, ...together },
      'open files allow fewer connections than HUB_MAX_CONNECTIONS',
    )
  }
  return { room, outgoing }
}

/**
 * How many files this process may open: Node has already raised the soft limit to the hard one. Infinity if the system
 * does not say.
 */
async function allowedOpenFiles(): Promise<number> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const [, soft] = /^Max open files +(\d+)/m.exec(limits) ?? []
  return soft === undefined ? Infinity : Number(soft)
}
