import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startRedis } from '../redis-server.ts'
import { shareSigningKeyOn } from '../signing-key.ts'
import { spawnHub } from '../spawn-hub.ts'
import { askNode, type Issued, temporaryDirectory } from '../start-hub.ts'
import { until } from '../until.ts'

export type FleetNode = Awaited<ReturnType<typeof startFleet>>['nodes'][number]

/**
 * Starts nodes that share a Redis, each in its own process. `through` returns the URL by which a node reaches Redis
 * (default: directly).
 */
export async function startFleet(
  t: Test,
  count: number,
  options: {
    env?: Record<string, string>
    /** Further variables of one node. */
    envOf?: (index: number) => Record<string, string>
    settings?: readonly string[]
    through?: (index: number, port: number) => Promise<string>
    /** By how many milliseconds the clock of a node is ahead. */
    ahead?: (index: number) => number
    /** Start the nodes one after the other, so that slots follow the order of `nodes`. */
    inTurn?: boolean
  } = {},
) {
  const redis = await startRedis(t, options.settings)
  await shareSigningKeyOn(redis.url)
  const home = await temporaryDirectory(t)
  let before: Promise<unknown> | undefined
  const nodes = await Promise.all(
    Array.from({ length: count }, (_, index) => {
      const started = options.inTurn && before ? before.then(() => startNode(index)) : startNode(index)
      before = started
      return started
    }),
  )
  const [a, b, c] = nodes
  if (!a || !b) throw new Error('two nodes at least')
  return { redis, nodes, a, b, c: c ?? b }

  async function startNode(index: number) {
    const url = (await options.through?.(index, redis.port)) ?? redis.url
    const aheadMs = options.ahead?.(index) ?? 0
    const env = {
      HUB_REDIS_URL: url,
      HUB_PUBLIC_URL: 'https://hub.example',
      ...options.env,
      ...options.envOf?.(index),
      ...(aheadMs !== 0 && { NODE_OPTIONS: `--import=${clockAhead(aheadMs)}` }),
    }
    const directory = join(home, String(index))
    await mkdir(directory, { recursive: true })
    let hub = await spawnHub(t, directory, env)
    let isRunning = true

    return {
      ask,
      ...withCredentials(ask),
      index,
      caPath: hub.caPath,
      get mqttPort() {
        return hub.mqttPort
      },
      get httpsPort() {
        return hub.httpsPort
      },
      get isRunning() {
        return isRunning
      },
      get name() {
        return `:${hub.pid}`
      },
      /** The messages that the node has logged since its last start. */
      messages: () => hub.messages,

      async kill(): Promise<void> {
        isRunning = false
        await hub.stop('SIGKILL')
      },
      /** Stops the node with SIGTERM: the node tells the other nodes that it leaves. */
      async stop(): Promise<void> {
        isRunning = false
        await hub.stop('SIGTERM')
      },
      /** Starts the node again, with the same data directory. */
      async start(): Promise<void> {
        hub = await spawnHub(t, directory, env)
        isRunning = true
      },

      /** The session with this client id, as this node lists it. */
      async connected(clientId: string): Promise<{ connected: boolean; node: string | null } | undefined> {
        const sessions =
          await ask<{ clientId: string; connected: boolean; node: string | null }[]>('sessions.list')
        return sessions.find((session) => session.clientId === clientId)
      },
    }

    /** Sends one `hubctl` command to the node. Throws if the node refuses the command. */
    function ask<Result>(command: string, args: Record<string, unknown> = {}): Promise<Result> {
      return askNode(hub.adminSocket, command, args)
    }
  }
}

/** Functions for the credentials of a hub, through the node behind `ask`. */
export function withCredentials(
  ask: <Result>(command: string, args?: Record<string, unknown>) => Promise<Result>,
) {
  return {
    publisher: (institutions: readonly string[]): Promise<Issued> =>
      ask('credentials.add', { role: 'publisher', label: 'test', institutions }),
    subscriber: (...filters: string[]): Promise<Issued> =>
      ask('credentials.add', { role: 'subscriber', label: 'test', filters }),
    /** Resolves when this node knows at least this number of credentials. */
    async knows(credentials: number): Promise<void> {
      await until(async () => (await ask<unknown[]>('credentials.list')).length >= credentials)
    },
  }
}

/** A module, as a data URL, that sets the clock of its process ahead by `ms` milliseconds. */
function clockAhead(ms: number): string {
  const code = `const { now } = Date
    globalThis.Date = class extends Date {
      constructor(...given) { super(...(given.length > 0 ? given : [now() + ${ms}])) }
      static now() { return now() + ${ms} }
    }`
  return `data:text/javascript,${encodeURIComponent(code)}`
}
