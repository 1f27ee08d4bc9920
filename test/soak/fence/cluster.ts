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
 * and its data directory.
 */
export async function startCluster<B extends Backend>(
  t: Test,
  backend: B,
  { count = 3, env = {} }: { count?: number; env?: Record<string, string> } = {},
) {
  const home = await temporaryDirectory(t)
  const nodes = await Promise.all(Array.from({ length: count }, (_, index) => startNode(index)))
  const [a, b = a] = nodes
  if (!a || !b) throw new Error('one node at least')
  return { nodes, a, b, backend, home }

  async function startNode(index: number) {
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
      ...reach,
      ...env,
    }
    let hub = await spawnHub(t, directory, variables)
    const earlier: string[] = []
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
      messages: () => [...earlier, ...hub.messages],

      /** How the process of this node first ended by itself, without `kill`. Undefined if it never did. */
      ending(): string | undefined {
        noteEnding()
        return ending
      },
      async kill(): Promise<void> {
        noteEnding()
        await hub.stop('SIGKILL')
      },
      /** Starts the node again. Tries for at most 60 s. */
      async start(): Promise<void> {
        earlier.push(...hub.messages)
        const end = performance.now() + 60_000
        for (;;) {
          try {
            hub = await spawnHub(t, directory, variables)
            return
          } catch (error) {
            if (performance.now() > end) throw error
            await delay(200)
          }
        }
      },
      /** Stops the process (SIGSTOP). Its connections stay open. */
      pause: () => signal('SIGSTOP'),
      resume: () => signal('SIGCONT'),
    }

    function signal(name: 'SIGSTOP' | 'SIGCONT'): void {
      noteEnding()
      if (isThere(hub.pid)) process.kill(hub.pid, name)
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

/** Whether a process exists. A stopped process exists. */
function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
