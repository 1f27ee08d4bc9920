import { readFile } from 'node:fs/promises'
import type { Log } from '../telemetry/log.ts'

/** The share of a process's open files that connections may take. */
const connectionShare = 3 / 4
/** The share of all open files that connections to webhooks and plugin targets may take. */
const outgoingShare = 1 / 8

/** Connections that a process may have. */
interface OpenFiles {
  /** Connections of each of the two listeners (MQTT, HTTPS). */
  incoming: number
  /** Connections to webhooks and plugin targets. */
  outgoing: number
}

/**
 * Returns how many connections there may be: as many as wanted, or as the open files allow if that is less. With more,
 * the store could open no file, and a flood of connections would keep events out. Warns of fewer incoming connections.
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
 * The open files that the system allows this process: Node has raised the soft limit to the hard one. Infinity if the
 * system does not say.
 */
async function allowedOpenFiles(): Promise<number> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const [, soft] = /^Max open files +(\d+)/m.exec(limits) ?? []
  return soft === undefined ? Infinity : Number(soft)
}
