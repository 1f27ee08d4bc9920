import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { startChild } from '../child.ts'
import { residentMemory } from '../memory.ts'
import { v8Options } from '../node.ts'
import type { Place } from '../sessions/part.ts'
import type { commands } from './life.ts'

export const dayFigures = {
  events: 'events',
  messages: 'messages kept',
  bytes: 'their size, MB',
  waiting: 'items waiting',
  dropped: 'items dropped',
  deadLetters: 'dead letters',
  disk: 'disk at most, MB',
  redis: 'memory of Redis at most, MB',
  heap: 'heap of the node without garbage, MB',
  memory: 'its memory at most, MB',
  sweep: 'longest removal, ms',
  cpu: 'CPU of the node per event, µs',
  pace: 'events taken per second',
}

export const hourMs = 3_600_000

export interface Week {
  env: Record<string, string>
  feedPath: string
  webhooks: number
  dead: number
  okUrl: string
  deadUrl: string
  parts: readonly Part[]
}

/** A part of a week. `rate`: events per second. */
export interface Part {
  name: string
  ms: number
  rate: number
}

/**
 * Runs a hub through the past days until now, as fast as the store allows. `seen` gets the figures of each part. Disk
 * and Redis are measured after every hour of the hub's clock. The largest size counts. The size at the end of a part
 * can be smaller.
 */
export async function live(
  place: Place,
  { env, feedPath, webhooks, dead, okUrl, deadUrl, parts }: Week,
  seen: (name: string, figures: Record<string, number>) => void,
): Promise<void> {
  const life = await startChild<typeof commands>('week/life.ts', { v8Options })
  try {
    const at = Date.now() - parts.reduce((sum, { ms }) => sum + ms, 0)
    await life.ask('open', { env, feedPath, at, deadUrl })
    await life.ask('subscribe', { count: webhooks, dead, okUrl, deadUrl })
    let eventsBefore = 0
    for (const { name, ms, rate } of parts) {
      const began = performance.now()
      const before = await life.usage()
      let [disk, redis] = [0, 0]
      for (let left = ms; left > 0; left -= hourMs) {
        await life.ask('live', { ms: Math.min(hourMs, left), rate })
        disk = Math.max(disk, await bytesBelow(place.directory))
        redis = Math.max(redis, (await place.memory?.()) ?? 0)
      }
      const seconds = (performance.now() - began) / 1000
      const { cpuMs } = await life.usage({ collected: true })
      const { kept, events, longestSweep, heap, ...lengths } = await life.ask('look', {})
      const count = events - eventsBefore
      eventsBefore = events
      seen(name, {
        events,
        messages: kept.messages,
        bytes: kept.bytes / 1e6,
        ...lengths,
        disk: disk / 1e6,
        ...(place.memory && { redis: redis / 1e6 }),
        heap: heap / 1e6,
        memory: ((await residentMemory(life.pid))?.highest ?? NaN) / 1e6,
        sweep: longestSweep,
        cpu: ((cpuMs - before.cpuMs) * 1000) / count,
        pace: count / seconds,
      })
    }
    await life.ask('close', {})
  } finally {
    await life.stop()
  }
}

/** Bytes of all files below a directory. Files that vanish meanwhile have none. */
export async function bytesBelow(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => lstat(join(parentPath, name)).catch(() => undefined))
  return (await Promise.all(sizes)).reduce((sum, stats) => sum + (stats?.size ?? 0), 0)
}
