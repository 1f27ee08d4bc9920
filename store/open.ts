import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { expected } from '../config/expected.ts'
import type { Log } from '../telemetry/log.ts'
import { type Damage, openEmbeddedStore } from './embedded.ts'
import { createMembership } from './nodes/membership.ts'
import { createOnlyNode, type Nodes } from './nodes/nodes.ts'
import { openRedisStore } from './redis/redis.ts'
import { redisSettingProblems } from './redis/settings.ts'
import { acceptReplacement, replacementOf } from './repair.ts'
import type { StoreState } from './state.ts'
import type { Store } from './store.ts'
import { watched } from './watched.ts'

/** The state of a node, and the nodes it shares that with. */
interface OpenStore {
  store: Store
  nodes: Nodes
  state: StoreState
  /** Begins to follow the other nodes, and joins them; call it when everything is loaded. */
  join(): Promise<void>
}

/**
 * Opens the store of the configuration: Redis where it says so, else the embedded one in the data directory.
 * `onGap`: what other nodes did can no longer be followed, everything must be loaded again.
 */
export function openStore(
  config: Config,
  /** What operators call this node. */
  name: string,
  log: Log,
  onGap: (reason: Error) => void,
): Promise<OpenStore> {
  const isShared = config.redisUrl !== undefined || config.redis !== undefined
  return isShared ? openShared(config, name, log, onGap) : openOwn(config, name, log)
}

async function openShared(
  config: Config,
  name: string,
  log: Log,
  onGap: (reason: Error) => void,
): Promise<OpenStore> {
  const { project, stage, dataDir, redisUrl: url, redis, redisReplicas: replicas } = config
  const server = { ...(url !== undefined && { url }), ...redis }
  const [setting, value] = url === undefined ? ['redis', redis] : ['HUB_REDIS_URL', url]
  let problem: string | undefined
  const store = watched(
    await expected(setting, value, 'a Redis that answers', () =>
      openRedisStore({
        ...{ server, project, stage, replicas },
        onConnection(state) {
          problem = state.up ? undefined : `Redis is not reachable (${state.reason})`
          if (state.up) log.info('Redis is back')
          else log.error({ reason: state.reason }, 'Redis is not reachable: nothing is acknowledged')
        },
      }),
    ),
  )
  try {
    for (const problem of await redisSettingProblems(server)) {
      log.warn({ problem }, 'Redis may lose what was acknowledged')
    }
    const nodes = await createMembership({ store, name, idFile: join(dataDir, 'node'), log })
    return {
      store,
      nodes,
      state: { unreachable: () => problem, replaced: () => undefined, accept: async () => undefined },
      async join() {
        store.startWatching(onGap)
        await nodes.join()
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

async function openOwn({ dataDir }: Config, name: string, log: Log): Promise<OpenStore> {
  const directory = join(dataDir, 'store')
  await mkdir(directory, { recursive: true })
  const store = await openEmbeddedStore(directory, (damage) => tell(damage, log))
  // Keys and password hashes lie here, also where the data directory itself was made by somebody else.
  await chmod(directory, 0o700)
  let replaced = await replacementOf(directory)
  const state: StoreState = {
    unreachable: () => undefined,
    replaced: () => replaced,
    async accept() {
      await acceptReplacement(directory)
      replaced = undefined
    },
  }
  return { store, nodes: createOnlyNode(name), state, join: async () => undefined }
}

function tell(damage: Damage, log: Log): void {
  if (damage.outcome === 'cut') {
    log.error({ bytes: damage.bytes }, 'part of the log of the store cannot be read, and is left out')
  } else if (damage.outcome === 'repaired') {
    const { error: err, movedTo, entries } = damage
    log.error({ err, movedTo, entries }, 'the store was damaged: it is repaired, entries may be missing')
  } else {
    const { error: err, movedTo, reason } = damage
    log.fatal(
      { err, movedTo, reason },
      'the store was damaged: it is moved aside, and the node starts with an empty one',
    )
  }
}
