import type { Test } from 'tap'
import { withCredentials } from '../../nodes/fleet.ts'
import { startRedis } from '../../redis-server.ts'
import { shareSigningKeyOn } from '../../signing-key.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { askNode, temporaryDirectory } from '../../start-hub.ts'

export const back = 'the worker accepts clients again'

export function workersOn(redisUrl: string): Record<string, string> {
  return { HUB_REDIS_URL: redisUrl, HUB_PUBLIC_URL: 'https://hub.example', HUB_WORKERS: '2' }
}

/** Starts a hub with two workers on a Redis of its own. */
export async function startWorkers(t: Test, env: Record<string, string> = {}) {
  const redis = await startRedis(t)
  await shareSigningKeyOn(redis.url)
  const home = await temporaryDirectory(t)
  const variables = { ...workersOn(redis.url), ...env }
  const hub = await spawnHub(t, home, variables)
  const ask = <Result>(command: string, args: Record<string, unknown> = {}): Promise<Result> =>
    askNode(hub.adminSocket, command, args)
  return { redis, home, env: variables, hub, ask, ...withCredentials(ask) }
}

/** The process ids of the workers of the hub that have joined Redis so far. */
export function workersOf(hub: { lines: Record<string, unknown>[] }): number[] {
  return hub.lines.filter(({ msg }) => msg === 'joined the other nodes').map(({ pid }) => Number(pid))
}

/** Resolves when `count` workers in all have come back after their death. */
export function areBack(hub: { messages: string[] }, count: number): boolean {
  return hub.messages.filter((message) => message === back).length >= count
}
