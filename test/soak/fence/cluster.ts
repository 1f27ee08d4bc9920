import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { freePort } from '../../free-port.ts'
import { withCredentials } from '../../nodes/fleet.ts'
import { type RedisServer, startRedis } from '../../redis-server.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { askNode, temporaryDirectory } from '../../start-hub.ts'
import type { StoreFaults } from './faults.ts'
import { startNetwork, type Way } from './network.ts'

export type Cluster = Awaited<ReturnType<typeof startCluster>>
export type ClusterNode = Cluster['nodes'][number]

/** A store that each node reaches through a network of its own. */
export interface Backend {
  /** Makes a network between a node and the store. The variables `env` make the node use this network. */
  reach(home: string): Promise<{ env: Record<string, string>; way: Way }>
}

/** The store in the data directory of a single node. */
export function ownBackend(): Backend & { faults: StoreFaults } {
  const nothing = () => undefined
  const way = { cut: nothing, hold: nothing, deafen: nothing, slow: nothing, open: nothing, drop: nothing }
  return { reach: async () => ({ env: {}, way }), faults: {} }
}

/** Starts one Redis, which each node reaches through a network of its own. */
export async function startBackend(t: Test): Promise<Backend & { redis: RedisServer; faults: StoreFaults }> {
  const redis = await startRedis(t)
  return {
    redis,
    faults: {
      async restart(ms) {
        await redis.kill()
        await delay(ms)
        await redis.restart()
      },
      async pause(ms) {
        redis.pause()
        await delay(ms)
        redis.resume()
      },
    },
    async reach() {
      const way = await startNetwork(t, redis.port)
      return { env: { HUB_REDIS_URL: `redis://127.0.0.1:${way.port}` }, way }
    },
  }
}

/**
 * Starts nodes as processes that a test can kill, stop, and cut off from the store. A restarted node keeps its ports
 * and its data directory. `workers`: the number of workers of each node (`HUB_WORKERS`), which share its network.
 */
export async function startCluster<B extends Backend>(
  t: Test,
  backend: B,
  { workers = [1, 1, 1], env = {} }: { workers?: readonly number[]; env?: Record<string, string> } = {},
) {
  const home = await temporaryDirectory(t)
  const nodes = await Promise.all(workers.map(startNode))
  const [a, b = a] = nodes
  if (!a || !b) throw new Error('one node at least')
  return { nodes, a, b, backend, home }

  async function startNode(count: number, index: number) {
    const directory = join(home, String(index))
    await mkdir(directory, { recursive: true })
    const { way, env: reach } = await backend.reach(directory)
    const [mqttPort, httpsPort] = [await freePort(), await freePort()]
    const variables = {
      HUB_PUBLIC_URL: 'https://hub.example',
      HUB_PUBLISH_RATE: '0',
      HUB_LOGIN_FAILURES: '0',
      HUB_MQTT_PORT: String(mqttPort),
      HUB_HTTPS_PORT: String(httpsPort),
      HUB_WORKERS: String(count),
      ...reach,
      ...env,
    }
    let hub = await spawned()
    const earlier: { messages: string[]; lines: Line[] } = { messages: [], lines: [] }
    let ending: string | undefined

    return {
      index,
      mqttPort,
      httpsPort,
      way,
      ask,
      ...withCredentials(ask),
      caPath: hub.caPath,
      /** Messages in the log of this node since its first start. */
      messages: () => [...earlier.messages, ...hub.messages],

      /** How a process of this node first ended by itself, without `kill`. Undefined if none did. */
      ending(): string | undefined {
        noteEnding()
        return ending ?? endedWorker([...earlier.lines, ...hub.lines])
      },
      async kill(): Promise<void> {
        noteEnding()
        await hub.stop('SIGKILL')
      },
      /** Starts the node again. Tries for at most 60 s. */
      async start(): Promise<void> {
        earlier.messages.push(...hub.messages)
        earlier.lines.push(...hub.lines)
        const end = performance.now() + 60_000
        for (;;) {
          try {
            hub = await spawned()
            return
          } catch (error) {
            if (performance.now() > end) throw error
            await delay(200)
          }
        }
      },
      /** Stops the processes of the node (SIGSTOP). Their connections stay open. */
      pause(): void {
        noteEnding()
        for (const pid of pids()) process.kill(pid, 'SIGSTOP')
      },
      /** Lets all processes of the node go on. */
      resume,
      /** Kills one worker, which the node starts again. `choice`: any number. */
      killWorker: (choice: number) => signalWorker(choice, 'SIGKILL'),
      /** Stops one worker. */
      pauseWorker: (choice: number) => signalWorker(choice, 'SIGSTOP'),
    }

    async function spawned() {
      const started = await spawnHub(t, directory, variables)
      // A stopped worker does not end with its primary, and keeps the output of the node open.
      t.teardown(resume)
      return started
    }

    function resume(): void {
      noteEnding()
      for (const pid of pids()) process.kill(pid, 'SIGCONT')
    }

    /** The processes of the node that exist. */
    function pids(): number[] {
      return [...new Set([hub.pid, ...hub.lines.map(({ pid }) => Number(pid))])].filter(isThere)
    }

    function signalWorker(choice: number, name: 'SIGKILL' | 'SIGSTOP'): void {
      const workers = pids().filter((pid) => pid !== hub.pid)
      const pid = workers[choice % workers.length]
      if (pid !== undefined) process.kill(pid, name)
    }

    function noteEnding(): void {
      if (!isThere(hub.pid)) ending ??= `${hub.messages.at(-1)} ${hub.errors()}`
    }

    /** Runs a `hubctl` command. Rejects if the node refuses it, or does not answer in time. */
    async function ask<Result>(
      command: string,
      args: Record<string, unknown> = {},
      timeoutMs = 20_000,
    ): Promise<Result> {
      const giveUp = new AbortController()
      const late = delay(timeoutMs, undefined, giveUp).then(() => {
        throw new Error('no answer in time')
      })
      const asked = askNode<Result>(hub.adminSocket, command, args, timeoutMs)
      return Promise.race([asked, late]).finally(() => giveUp.abort())
    }
  }
}

/** A line of the log. */
type Line = Record<string, unknown>

/** The first worker that ended by itself after it had accepted clients. One that is killed may fail to start again. */
function endedWorker(lines: readonly Line[]): string | undefined {
  const away = new Set<unknown>()
  for (const { msg, worker, code } of lines) {
    if (msg === 'the worker accepts clients again') away.delete(worker)
    // All of them start again with their node.
    if (msg === 'hub ready') away.clear()
    if (msg !== 'a worker ended, and starts again') continue
    if (code !== null && !away.has(worker)) return `worker ${worker} with ${code}`
    away.add(worker)
  }
  return undefined
}

/** Whether a process exists. A stopped process exists. */
function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
