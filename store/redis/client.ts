import { readFile } from 'node:fs/promises'
import type { Duplex } from 'node:stream'
import type { Redis, RedisOptions } from 'ioredis'
import type { Client } from './connection.ts'

/** Where Redis is: the URL of a server, some Sentinels, or some nodes of a cluster. */
export interface RedisServer {
  /** `redis://[user:password@]host[:port][/database]`, or `rediss://…` for TLS. */
  url?: string | undefined
  sentinels?: readonly RedisAddress[]
  /** The name under which the Sentinels know the server. */
  name?: string
  cluster?: readonly RedisAddress[]
  /** User name and password. If given, they replace those of the URL. */
  username?: string
  password?: string
  sentinelPassword?: string
  /** Uses TLS even if the URL does not ask for it. */
  tls?: boolean
  /**
   * Path of a PEM file with a CA. The client trusts this CA instead of those that Node.js knows. With `ca`, the client
   * uses TLS, whatever `tls` says.
   */
  ca?: string
}

interface RedisAddress {
  readonly host: string
  readonly port: number
}

/**
 * Returns a function that makes clients of ioredis. A client reconnects by itself. Clients never queue or repeat
 * commands: a repetition can do harm.
 */
export async function createClients(server: RedisServer, timeoutMs: number) {
  const ioredis = await import('ioredis')
  const { host, port, db, username, password, isTls } = partsOf(server.url)
  const ca = server.ca === undefined ? undefined : await readFile(server.ca)
  const tls = isTls || server.tls || ca ? { ...(ca && { ca }) } : undefined
  const user = server.username ?? username
  const secret = server.password ?? password
  const retryStrategy = (attempt: number) => Math.min(50 * attempt, 500)
  const options: RedisOptions = {
    ...(user && { username: user }),
    ...(secret && { password: secret }),
    ...(tls && { tls }),
    connectTimeout: timeoutMs,
    disconnectTimeout: 500,
    keepAlive: 5_000,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    disableClientInfo: true,
    // Connects again after an error READONLY. After a failover, the old master may still answer, but as a read-only
    // replica.
    reconnectOnError: (error) => /\bREADONLY\b/.test(error.message),
  }

  return (connectionName: string): Client => {
    const common = { ...options, connectionName }
    if (server.cluster) {
      const cluster = new ioredis.Cluster([...server.cluster], {
        redisOptions: common,
        enableOfflineQueue: false,
        clusterRetryStrategy: retryStrategy,
        retryDelayOnFailover: 0,
        retryDelayOnClusterDown: 0,
        slotsRefreshTimeout: timeoutMs,
        // Connects to names instead of IP addresses, because certificates are issued to names.
        ...(tls && { dnsLookup: (address, found) => found(null, address) }),
      })
      cluster.on('+node', hearAllErrors)
      return cluster
    }
    const single = { ...common, retryStrategy, enableOfflineQueue: false }
    if (!server.sentinels) return hearAllErrors(new ioredis.Redis({ ...single, host, port, db }))
    const ofSentinels = new ioredis.Redis({
      ...single,
      sentinels: [...server.sentinels],
      name: server.name ?? 'mymaster',
      sentinelCommandTimeout: timeoutMs,
      sentinelRetryStrategy: retryStrategy,
      ...(server.sentinelPassword && { sentinelPassword: server.sentinelPassword }),
      ...(tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
    })
    return hearAllErrors(ofSentinels)
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
