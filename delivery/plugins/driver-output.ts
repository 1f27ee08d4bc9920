import type { Readable } from 'node:stream'
import pino from 'pino'
import { type Log, logOfOthers } from '../../telemetry/log.ts'

/** How much of the output of a driver is read in a second, bytes. More waits, mostly in the memory of the driver. */
const bytesPerSecond = 8 * 1024 * 1024
/** How much of that is cut into lines. */
const legibleBytesPerSecond = 65_536
/** How many lines of the output of a driver are logged in a second. */
const linesPerSecond = 20
/** Longest line of the output that is logged, characters. */
const maxLine = 1_000
/** What Node writes before it ends for want of memory. */
const outOfMemory = 'JavaScript heap out of memory'

/** Logs what a driver writes to its output, for example with `console.log`. */
export function createDriverOutput(streams: readonly (Readable | null)[], log: Log) {
  let bytes = 0
  let lines = 0
  let leftOut = 0
  let bytesLeftOut = 0
  let isOutOfMemory = false
  for (const stream of streams) {
    let rest = ''
    stream?.on('data', (chunk: Buffer) => {
      const isLegible = bytes < legibleBytesPerSecond
      bytes += chunk.length
      if (bytes > bytesPerSecond) stream.pause()
      if (!isLegible) {
        bytesLeftOut += chunk.length
        isOutOfMemory ||= chunk.includes(outOfMemory)
        return
      }
      const parts = (rest + chunk.toString()).split('\n')
      rest = parts.pop()?.slice(0, maxLine) ?? ''
      for (const line of parts) write(line)
    })
    stream?.on('error', () => {})
    stream?.on('end', () => write(rest))
  }

  return {
    /** Begins the next second. */
    nextSecond,

    /** Whether Node has written that it has no memory left. */
    saidOutOfMemory: () => isOutOfMemory,

    /** Reads no more. */
    end(): void {
      for (const stream of streams) stream?.destroy()
      nextSecond()
    },
  }

  function nextSecond(): void {
    if (leftOut + bytesLeftOut > 0) {
      const leftOutOf = { lines: leftOut, bytes: bytesLeftOut }
      log.warn(leftOutOf, 'plugin driver writes too much, and lines were left out')
    }
    bytes = 0
    lines = 0
    leftOut = 0
    bytesLeftOut = 0
    for (const stream of streams) if (stream?.isPaused()) stream.resume()
  }

  function write(line: string): void {
    isOutOfMemory ||= line.includes(outOfMemory)
    if (line.trim() === '') return
    if (++lines > linesPerSecond) leftOut++
    else log.info({ line: line.slice(0, maxLine) }, 'plugin driver wrote')
  }
}

/**
 * Logs a line that a driver has given to its log, with the level of the driver. A reader must be able to tell what the
 * hub says from what a driver says: a field with the name of one of the hub's own is called `driver.time`, for example.
 */
export function logLine(log: Log, line: string): void {
  // The first level is that of the line. A second one is a field.
  const [, number = ''] = /^\{"level":(\d+)/.exec(line) ?? []
  const { msg, ...given } = JSON.parse(line)
  if (String(given.level) === number) delete given.level
  const fields = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [ofTheHub.has(name) ? `driver.${name}` : name, value]),
  )
  const label = pino.levels.labels[Number(number)]
  if (label === 'fatal' || label === 'error' || label === 'warn') logOfOthers(log)[label](fields, msg)
  else if (label === 'info' || label === 'debug' || label === 'trace') logOfOthers(log)[label](fields, msg)
}

/** The fields that each line of the hub about a driver has. */
const ofTheHub = new Set(['level', 'time', 'pid', 'hostname', 'plugin'])
