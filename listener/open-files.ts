import { readFile } from 'node:fs/promises'
import type { Log } from '../telemetry/log.ts'

/** The share of the open files that all connections may take together, incoming and outgoing. */
const connectionShare = 3 / 4
/** The share of all open files that connections to webhooks and plugin targets may take. */
const outgoingShare = 1 / 8

/** How many connections a process may have. */
interface OpenFiles {
  /** Connections of each of the two listeners (MQTT, HTTPS). */
  incoming: number
  /** Connections to webhooks and plugin targets. */
  outgoing: number
}

/**
 * Lowers the wanted numbers of connections to what the open files allow. A flood of connections could otherwise leave
 * the store no file to open, and the node could take no event. Logs a warning if fewer incoming connections are allowed
 * than wanted.
 */
export async function connectionsWithinOpenFiles(
  wanted: OpenFiles,
  log: Pick<Log, 'warn'>,
  openFiles: () => Promise<number> = allowedOpenFiles,
): Promise<OpenFiles> {
  const allowed = await openFiles()
  const outgoing = Math.min(wanted.outgoing, Math.floor(allowed * outgoingShare))
  const room = Math.floor((allowed * connectionShare - outgoing) / 2)
  if (wanted.incoming <= room) return { incoming: wanted.incoming, outgoing }
  log.warn(
    { wanted: wanted.incoming, openFiles: allowed, room },
    'open files allow fewer connections than HUB_MAX_CONNECTIONS',
  )
  return { incoming: room, outgoing }
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
