import { show } from './mask.ts'
import { outputProblems } from './outputs.ts'
import { type RedisConfig, redisProblems } from './redis.ts'

/** The settings that depend on each other. */
interface Settings {
  stage?: string
  mqttPort?: number
  httpsPort?: number
  pushAllowPrivate?: boolean
  publicUrl?: string
  redisUrl?: string
  redis?: RedisConfig
  redisReplicas?: number
  workers?: number | 'auto'
  tlsCert?: string
  tlsKey?: string
  smtp?: { user?: string; password?: string }
  plugins?: unknown
  outputs?: unknown
  proxyProtocol?: boolean
  proxyFrom?: readonly unknown[]
}

/** Returns the problems between settings. The settings may still have wrong types. */
export function crossProblems(merged: Settings): string[] {
  const problems: string[] = []
  if (merged.stage === 'prod' && merged.pushAllowPrivate === true) {
    problems.push('HUB_PUSH_ALLOW_PRIVATE: true, expected false on stage prod')
  }
  if (merged.mqttPort !== 0 && merged.mqttPort === merged.httpsPort) {
    problems.push(`HUB_HTTPS_PORT: ${show('', merged.httpsPort)}, expected another port than HUB_MQTT_PORT`)
  }
  const hasRedis = merged.redisUrl !== undefined || merged.redis !== undefined
  if (hasRedis && merged.publicUrl === undefined) {
    problems.push(
      'HUB_PUBLIC_URL: unset, expected an https URL, the issuer of tokens for all nodes of one Redis',
    )
  }
  if (!hasRedis && Number(merged.redisReplicas) > 0) {
    problems.push(`HUB_REDIS_REPLICAS: ${show('', merged.redisReplicas)}, expected 0 without a Redis`)
  }
  if (!hasRedis && merged.workers !== 1 && merged.workers !== undefined) {
    problems.push(
      `HUB_WORKERS: ${show('', merged.workers)}, expected 1 without a Redis (HUB_REDIS_URL): the embedded store belongs to one process`,
    )
  }
  problems.push(...redisProblems(merged.redisUrl, merged.redis, merged.redisReplicas))
  if (merged.tlsCert !== undefined && merged.tlsKey === undefined) {
    problems.push('HUB_TLS_KEY: unset, expected the path of the key that belongs to HUB_TLS_CERT')
  }
  if (merged.tlsKey !== undefined && merged.tlsCert === undefined) {
    problems.push('HUB_TLS_CERT: unset, expected the path of the certificate that belongs to HUB_TLS_KEY')
  }
  if (merged.proxyProtocol !== true && Number(merged.proxyFrom?.length) > 0) {
    problems.push(`proxyFrom: ${show('', merged.proxyFrom)}, expected only with HUB_PROXY_PROTOCOL=true`)
  }
  problems.push(...pluginProblems(merged.plugins), ...outputProblems(merged.outputs))
  if ((merged.smtp?.user === undefined) !== (merged.smtp?.password === undefined)) {
    problems.push('smtp: expected user and password, or neither of them')
  }
  return problems
}

function pluginProblems(plugins: unknown): string[] {
  const targets = (Array.isArray(plugins) ? plugins : []).map(
    (target): Record<string, unknown> => Object(target),
  )
  return targets.flatMap(({ type, url, driver }, index) => {
    if (url === undefined && driver === undefined && type !== undefined) {
      return [`plugins.${index}.url: missing, expected an https URL, or driver, the path of one`]
    }
    // The webhook driver would refuse it at each attempt, for days.
    if (driver === undefined && hasUser(url)) {
      return [`plugins.${index}.url: ${show('url', url)}, expected no user name and password in it`]
    }
    const isTwice = targets.findIndex((target) => target.type === type) < index && type !== undefined
    return isTwice ? [`plugins.${index}.type: ${show('type', type)}, expected each type once`] : []
  })
}

function hasUser(url: unknown): boolean {
  if (typeof url !== 'string' || !URL.canParse(url)) return false
  const { username, password } = new URL(url)
  return username !== '' || password !== ''
}
