import { createConnection } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import type { Redis, RedisOptions } from 'ioredis'
import type { CurrentCa } from '../../config/ca-files.ts'
import type { RedisConfig } from '../../config/redis.ts'
import type { RedisClient } from './connection.ts'
import { type RedisAddress, type Sentinels, watchSentinels } from './sentinels.ts'

/**
 * Where Redis is, as the configuration has it: the URL of a server, some Sentinels, or some nodes of a cluster. User name
 * and password replace those of the URL.
 */
export type RedisServer = Omit<RedisConfig, 'ca'> & {
  /** `redis://[user:password@]host[:port][/database]`, or `rediss://…` for TLS. */
  url?: string | undefined
  /**
   * Returns the CA that the client trusts instead of those that Node.js knows, PEM. It is asked at each connection.
   * With `ca`, the client uses TLS, whatever `tls` says.
   */
  ca?: CurrentCa
}

/** Shortest and longest pause between two attempts to connect, milliseconds. */
const [firstPauseMs, maxPauseMs] = [50, 1_000]
/** How long a Sentinel may take to answer, milliseconds. */
const sentinelMs = 1_000
/** After this time, a connection that is being closed is destroyed, milliseconds. */
const disconnectMs = 500

/**
 * `connect` makes clients of ioredis, and `close` ends what they share. A client reconnects by itself. Clients never
 * queue or repeat commands: a repetition can do harm.
 */
export async function createRedisClients(server: RedisServer, timeoutMs: number) {
  const ioredis = await import('./ioredis.ts')
  const { host, port, db, username, password, isTls } = partsOf(server.url)
  const { ca } = server
  // ioredis reads these settings at each connection.
  const withCa = {
    get ca() {
      return ca?.()
    },
  }
  const tls = ca ? withCa : isTls || server.tls ? {} : undefined
  const user = server.username ?? username
  const secret = server.password ?? password
  const options: RedisOptions = {
    ...(user && { username: user }),
    ...(secret && { password: secret }),
    ...(tls && { tls }),
    connectTimeout: timeoutMs,
    disconnectTimeout: disconnectMs,
    keepAlive: 5_000,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    disableClientInfo: true,
    // Connects again after an error READONLY. After a failover, the old master may still answer, but as a read-only
    // replica.
    reconnectOnError: (error) => /\bREADONLY\b/.test(error.message),
  }

  const ofSentinels = new Set<Redis>()
  const sentinels =
    server.sentinels &&
    watchSentinels({
      sentinels: server.sentinels,
      name: server.name ?? 'mymaster',
      open: (address) => new ioredis.Redis({ ...sentinelOptions(), ...address }),
      onChange(reason) {
        for (const client of ofSentinels) {
          client.emit('error', new Error(reason))
          // At once, without answers that are under way: the old master may take what is lost.
          client.stream?.destroy()
        }
      },
    })
  const Connector = sentinels && connectorTo(sentinels, ioredis.AbstractConnector, tls)

  return {
    connect(connectionName: string): RedisClient {
      const pauses = createPauses()
      const common = { ...options, connectionName }
      if (server.cluster) {
        const cluster = new ioredis.Cluster([...server.cluster], {
          redisOptions: common,
          enableOfflineQueue: false,
          clusterRetryStrategy: pauses.next,
          retryDelayOnFailover: 0,
          retryDelayOnClusterDown: 0,
          slotsRefreshTimeout: timeoutMs,
          // Connects to names instead of IP addresses, because certificates are issued to names.
          ...(tls && { dnsLookup: (address, found) => found(null, address) }),
        })
        cluster.on('+node', hearAllErrors)
        return Object.assign(cluster, { worked: pauses.restart })
      }
      const single = { ...common, retryStrategy: pauses.next, enableOfflineQueue: false }
      const client = new ioredis.Redis({ ...single, ...(Connector ? { Connector } : { host, port, db }) })
      if (sentinels) {
        ofSentinels.add(client)
        client.on('end', () => ofSentinels.delete(client))
      }
      return Object.assign(hearAllErrors(client), { worked: pauses.restart })
    },

    close: (): void => sentinels?.close(),
  }

  function sentinelOptions(): RedisOptions {
    return {
      ...(server.sentinelPassword && { password: server.sentinelPassword }),
      ...(tls && { tls }),
      connectTimeout: sentinelMs,
      commandTimeout: sentinelMs,
      maxRetriesPerRequest: 0,
      keepAlive: 5_000,
      enableReadyCheck: false,
      disableClientInfo: true,
      // `watchSentinels` subscribes itself. When ioredis does, nobody hears that the connection broke meanwhile, and the
      // rejection ends the process.
      autoResubscribe: false,
      retryStrategy: (attempt) => Math.min(firstPauseMs * attempt, maxPauseMs),
    }
  }
}

/** Makes the class with which ioredis connects to the master of the Sentinels. */
function connectorTo(
  sentinels: Sentinels,
  AbstractConnector: typeof import('ioredis').AbstractConnector,
  tls: RedisOptions['tls'],
) {
  return class extends AbstractConnector {
    constructor() {
      super(disconnectMs)
    }

    /** False makes ioredis connect again: a server that became a replica takes no commits. */
    override check(info: { role?: string }): boolean {
      return info.role === undefined || info.role === 'master'
    }

    async connect(emit: (type: string, error: Error) => void) {
      this.connecting = true
      const address = await sentinels.master((problem) => emit('error', new Error(problem)))
      const socket = tls ? connectTls({ ...address, ...tls }) : createConnection(address)
      socket.once('error', (error) => {
        this.firstError = error
      })
      // The client was disconnected meanwhile. A rejection would keep it from connecting again.
      if (!this.connecting) socket.destroy()
      this.stream = socket
      return socket
    }
  }
}

/** Pauses between attempts to connect. Each one is longer, until a connection has worked. */
function createPauses() {
  let attempts = 0
  return {
    /** The pause before the next attempt, milliseconds. */
    next: (): number => Math.min(firstPauseMs * 2 ** attempts++, maxPauseMs),
    restart(): void {
      attempts = 0
    },
  }
}

/**
 * Adds an error listener to every socket. ioredis handles only the first error, and a second one would end the process.
 */
function hearAllErrors(redis: Redis): Redis {
  const heard = new WeakSet<Duplex>()
  const hear = () => {
    const socket: Duplex | undefined = redis.stream
    if (!socket || heard.has(socket)) return
    heard.add(socket)
    socket.on('error', () => {})
  }
  // ioredis makes the socket after this event, in the same turn of the event loop.
  redis.on('connecting', () => setImmediate(hear))
  redis.on('error', hear)
  redis.on('close', hear)
  return redis
}

/** The name of a server for messages, without user and password. */
export function nameOf({ url, sentinels, name, cluster }: RedisServer): string {
  const list = (addresses: readonly RedisAddress[]) =>
    addresses.map(({ host, port }) => `${host}:${port}`).join(', ')
  if (cluster) return `the Redis cluster of ${list(cluster)}`
  if (sentinels) return `the Redis ${name} of the Sentinels ${list(sentinels)}`
  const { host, port } = partsOf(url)
  return `the Redis on ${host}:${port}`
}

function partsOf(url = 'redis://localhost') {
  // The error of `new URL` would show the password.
  if (!URL.canParse(url)) throw new Error('the URL of Redis is malformed')
  const { protocol, hostname, port, pathname, username, password } = new URL(url)
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1') || 'localhost',
    port: Number(port || 6379),
    db: Number(pathname.slice(1) || 0),
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
    isTls: protocol === 'rediss:',
  }
}
