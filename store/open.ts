import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { CurrentCa } from '../config/ca-files.ts'
import { expected, readCa } from '../config/expected.ts'
import type { Config } from '../config/settings.ts'
import type { Log } from '../telemetry/log.ts'
import { openEmbeddedStore } from './embedded.ts'
import type { Damage } from './level/directory.ts'
import { acceptReplacement, type Replacement, replacementOf } from './level/repair.ts'
import { createMembership } from './nodes/membership.ts'
import { createOnlyNode, type Nodes } from './nodes/nodes.ts'
import type { RedisServer } from './redis/client.ts'
import { isRefused } from './redis/connection.ts'
import { unreadable } from './redis/log.ts'
import { openRedisStore } from './redis/redis.ts'
import { watchRedisSettings } from './redis/settings.ts'
import type { Dumpable, Store } from './store.ts'

/** The state of a node's store. Reading it does not ask the store. */
export interface StoreState {
  /** Why the store cannot be reached. Undefined as long as no problem is known. */
  unreachable(): string | undefined
  /** The number of settings with which the store may lose what was acknowledged. */
  unsafeSettings(): number
  /** Set if an empty store has replaced a damaged one, until an operator accepts the empty store. */
  replaced(): Replacement | undefined
  accept(): Promise<void>
}

/** The store of a node, and the nodes that share it. */
interface OpenStore {
  store: Store & Dumpable
  nodes: Nodes
  state: StoreState
  /** Makes this node a member. From now on, it receives the changes of other nodes. `isUrgent`: see `Follow`. */
  join(isUrgent?: () => boolean): Promise<void>
  /** Resolves when this node has received all earlier commits of other nodes. Rejects with the reason if that fails. */
  catchUp(): Promise<void>
  /** Leaves the other nodes, then closes the store: what is stored last needs the membership. */
  close(): Promise<void>
}

/** What the code that uses the store hands in. */
interface Handlers {
  /** The CA that Redis is checked with. Undefined: those that Node.js knows. */
  redisCa?: CurrentCa | undefined
  /** Called when this node has missed changes, and must load everything again. */
  onGap: (reason: Error) => void
  /**
   * Brings the store into the form of this release, and takes in a waiting import, before other code reads the store.
   * True: the store may have changed.
   */
  prepare: (store: Store & Dumpable) => Promise<boolean>
}

/**
 * Opens the configured Redis, or else the embedded store in the data directory. Rejects if a newer release has written
 * the store.
 */
export function openStore(
  config: Config,
  /** The name of this node for operators. */
  name: string,
  log: Log,
  handlers: Handlers,
): Promise<OpenStore> {
  const server = redisServerOf(config, handlers.redisCa)
  return server ? openShared(config, server, name, log, handlers) : openOwn(config, name, log, handlers)
}

/**
 * Opens the configured store for a command outside of a node, which only reads: an import is for a node to take in
 * (`prepare`). A commit to a Redis would wait for no replica. Rejects if an embedded store is in use, or damaged.
 */
export async function openUnused(config: Config): Promise<Store & Dumpable> {
  const { project, stage, dataDir, redis } = config
  const ca = redis?.ca === undefined ? undefined : await readCa('redis.ca', redis.ca)
  const server = redisServerOf(config, ca === undefined ? undefined : () => ca)
  return server ? openRedisStore({ server, project, stage }) : openEmbeddedStore(join(dataDir, 'store'))
}

function redisServerOf({ redisUrl: url, redis }: Config, ca: CurrentCa | undefined): RedisServer | undefined {
  if (url === undefined && redis === undefined) return undefined
  const { ca: _path, ...rest } = redis ?? {}
  return { ...(url !== undefined && { url }), ...rest, ...(ca && { ca }) }
}

async function openShared(
  config: Config,
  server: RedisServer,
  name: string,
  log: Log,
  { onGap, prepare }: Handlers,
): Promise<OpenStore> {
  const { project, stage, dataDir, redisUrl, redis, redisReplicas: replicas } = config
  const [setting, value] = redisUrl === undefined ? ['redis', redis] : ['HUB_REDIS_URL', redisUrl]
  let problem: string | undefined
  let logProblem: string | undefined
  const whyUnreachable = () => problem ?? logProblem
  const open = () =>
    openRedisStore({
      server,
      project,
      stage,
      replicas,
      onConnection(state) {
        problem = state.up ? undefined : `Redis is not reachable (${state.reason})`
        if (state.up) log.info('Redis is back')
        else log.error({ reason: state.reason }, 'Redis is not reachable: nothing is acknowledged')
      },
      onReading(state) {
        logProblem = state.up ? undefined : unreadable(state.reason)
        if (state.up) log.info('the log of changes of Redis is read again')
        else
          log.error(
            { reason: state.reason },
            'the log of changes of Redis cannot be read: nothing is acknowledged',
          )
      },
    })
  let store = await expected(setting, value, redisThat, open)
  try {
    if (await prepare(store)) {
      // Opens the store again, so that the node does not follow changes that it has made itself. A store reports only
      // changes that come after its opening.
      await store.close()
      store = await open()
    }
    const settings = await watchRedisSettings({
      server,
      replicas,
      onChange(problem, isMended) {
        if (isMended) log.info({ problem }, 'a setting of Redis is mended')
        else log.warn({ problem }, 'Redis may lose what was acknowledged')
      },
    })
    const membership = await createMembership({
      store,
      name,
      url: config.nodeUrl,
      idFile: join(dataDir, 'node'),
      onGap,
      log,
    })
    return {
      store,
      nodes: membership,
      state: {
        unreachable: whyUnreachable,
        unsafeSettings: () => settings.problems().length,
        replaced: () => undefined,
        accept: async () => undefined,
      },
      join: membership.join,
      async catchUp() {
        const reason = whyUnreachable()
        if (reason !== undefined) throw new Error(reason)
        await store.catchUp()
      },
      async close() {
        settings.close()
        await membership.leave().catch((err: unknown) => log.warn({ err }, 'the other nodes were not told'))
        await store.close()
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** What is expected of Redis instead of this failure. */
function redisThat(failure: unknown): string {
  const { cause } = failure instanceof Error ? failure : {}
  return isRefused(cause) ? `a Redis that ${cause.code}` : 'a Redis that answers'
}

async function openOwn(
  { dataDir }: Config,
  name: string,
  log: Log,
  { prepare }: Handlers,
): Promise<OpenStore> {
  const directory = join(dataDir, 'store')
  await mkdir(directory, { recursive: true })
  const store = await openEmbeddedStore(directory, (damage) => tell(damage, log))
  try {
    // The store holds keys and password hashes; the data directory may have any mode.
    await chmod(directory, 0o700)
    await prepare(store)
    let replaced = await replacementOf(directory)
    const state: StoreState = {
      unreachable: () => undefined,
      unsafeSettings: () => 0,
      replaced: () => replaced,
      async accept() {
        await acceptReplacement(directory)
        replaced = undefined
      },
    }
    const nodes = createOnlyNode(name)
    return { store, nodes, state, join: nothing, catchUp: nothing, close: store.close }
  } catch (error) {
    await store.close()
    throw error
  }
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

async function nothing(): Promise<void> {}
