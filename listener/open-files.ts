import { readFile } from 'node:fs/promises'
import type { Log } from '../telemetry/log.ts'

/** Of the files a process may have open, those that its clients may take. */
const clientShare = 3 / 4

/**
 * How many connections each of the two listeners (MQTT, HTTPS) may have: as many as wanted, or as the system has open
 * files for, with a warning. Beyond that the store could open no file any more, and a flood of connections would
 * keep events out.
 */
export async function connectionsWithinOpenFiles(
  wanted: number,
  log: Pick<Log, 'warn'>,
  openFiles: () => Promise<number> = allowedOpenFiles,
): Promise<number> {
  const allowed = await openFiles()
  const room = Math.floor((allowed * clientShare) / 2)
  if (wanted <= room) return wanted
  log.warn(
    { wanted, openFiles: allowed, room },
    'open files allow fewer connections than HUB_MAX_CONNECTIONS',
  )
  return room
}

/** What the system allows this process; Node has raised the soft limit to the hard one. Infinity where nobody says. */
async function allowedOpenFiles(): Promise<number> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const [, soft] = /^Max open files +(\d+)/m.exec(limits) ?? []
  return soft === undefined ? Infinity : Number(soft)
}
