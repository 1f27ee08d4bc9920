import { resolve } from 'node:path'
import type { Static } from 'typebox'
import { Type } from '../event/type.ts'
import { flag, secret, text, whole } from './value-schemas.ts'

const address = Type.Object(
  { host: text(), port: whole(1, 65_535) },
  { additionalProperties: false, description: 'an object with host and port' },
)
const addresses = Type.Array(address, { minItems: 1, description: 'a list of host and port, at least one' })

/** Settings of the connection to Redis that have no place in `HUB_REDIS_URL`. */
export type RedisConfig = Static<typeof redis>
export const redis = Type.Object(
  {
    sentinels: Type.Optional(addresses),
    name: Type.Optional(text()),
    cluster: Type.Optional(addresses),
    tls: Type.Optional(flag()),
    ca: Type.Optional(text()),
    username: Type.Optional(text()),
    password: Type.Optional(secret(text())),
    sentinelPassword: Type.Optional(secret(text())),
  },
  { additionalProperties: false, description: 'an object with sentinels and name, with cluster, or with ca' },
)

/** Makes the path of the CA absolute. */
export function resolveRedisCa(set: RedisConfig, cwd: string): RedisConfig {
  return { ...set, ...(set.ca !== undefined && { ca: resolve(cwd, set.ca) }) }
}

/** Returns the problems between the settings of Redis. The settings may still have wrong types. */
export function redisProblems(url: unknown, config: RedisConfig | undefined, replicas: unknown): string[] {
  if (typeof config !== 'object' || config === null) return []
  const { sentinels, name, cluster, tls, ca, username, password, sentinelPassword } = config
  const scheme = typeof url === 'string' ? url.replace(/:.*/s, '') : ''
  const ways = [url, sentinels, cluster].filter((way) => way !== undefined)
  const rules: [holds: boolean, problem: string][] = [
    [ways.length === 1, 'redis: expected one of HUB_REDIS_URL, sentinels and cluster'],
    [
      (sentinels === undefined) === (name === undefined),
      'redis: expected sentinels and name, or neither of them',
    ],
    [
      sentinels !== undefined || sentinelPassword === undefined,
      'redis: expected sentinelPassword only with sentinels',
    ],
    [
      cluster === undefined || replicas === undefined || replicas === 0,
      'HUB_REDIS_REPLICAS: expected 0 with a cluster, which cannot be asked for the replicas of one commit',
    ],
    [username === undefined || password !== undefined, 'redis: expected a password for the username'],
    [
      tls !== false || (ca === undefined && scheme !== 'rediss'),
      'redis: expected tls true, or no tls at all',
    ],
    [
      (tls !== true && ca === undefined) || scheme !== 'redis',
      'HUB_REDIS_URL: expected a URL that starts with rediss://, because redis has tls or ca',
    ],
  ]
  return rules.filter(([holds]) => !holds).map(([, problem]) => problem)
}
