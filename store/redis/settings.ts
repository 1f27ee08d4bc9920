import { createRedisClients, type RedisServer } from './client.ts'
import { createConnection } from './connection.ts'

/** How long a starting node waits for the settings of Redis, milliseconds. */
const timeoutMs = 2_000
/** Time between two looks at the settings, milliseconds. A failover may bring a server with others. */
const lookMs = 60_000

/**
 * Looks at the settings of Redis, now and while the node runs, and tells of those with which Redis may lose acknowledged
 * commits. Resolves after the first look. `replicas`: how many must have a commit.
 */
export async function watchRedisSettings(parts: {
  server: RedisServer
  replicas: number
  /** Called with each problem that is new, and once more when it is mended. */
  onChange: (problem: string, isMended: boolean) => void
  lookMs?: number
}) {
  const { server, replicas, onChange } = parts
  const own = server.sentinels && replicas === 0 ? [withoutReplicas] : []
  let problems: readonly string[] = []
  change(own)
  // A look ends within four seconds, long before the next one.
  const timer = setInterval(() => void look(), parts.lookMs ?? lookMs).unref()
  await look()

  return {
    /** A sentence for each setting that is a problem. */
    problems: (): readonly string[] => problems,
    close: (): void => clearInterval(timer),
  }

  async function look(): Promise<void> {
    const found = await redisSettingProblems(server)
    if (found !== undefined) change([...own, ...found])
  }

  function change(found: readonly string[]): void {
    for (const problem of found) if (!problems.includes(problem)) onChange(problem, false)
    for (const problem of problems) if (!found.includes(problem)) onChange(problem, true)
    problems = found
  }
}

const withoutReplicas =
  'HUB_REDIS_REPLICAS is 0: a failover loses the acknowledged events that no replica has yet, and in a split all until the Sentinels replace the master'

/**
 * Returns a sentence for each setting with which Redis may lose acknowledged commits. An unreadable setting gets no
 * sentence. Undefined: Redis does not answer. Uses INFO where possible, because CONFIG is often forbidden.
 */
export async function redisSettingProblems(server: RedisServer): Promise<string[] | undefined> {
  const clients = await createRedisClients(server, timeoutMs).catch(() => undefined)
  if (!clients) return undefined
  const connection = createConnection(clients.connect('hub-settings'), { timeoutMs, quietMs: timeoutMs })
  const ask = (command: string, args: string[]) =>
    connection.ask((send) => send(command, args)).catch(() => undefined)
  try {
    const [persistence, memory, synced] = await Promise.all([
      ask('info', ['persistence']),
      ask('info', ['memory']),
      ask('config', ['GET', 'appendfsync']),
    ])
    if (persistence === undefined && memory === undefined && synced === undefined) return undefined
    return problemsOf({
      appendonly: fieldOf(persistence, 'aof_enabled'),
      policy: fieldOf(memory, 'maxmemory_policy'),
      appendfsync: Array.isArray(synced) && synced.length > 1 ? String(synced[1]) : undefined,
    })
  } finally {
    connection.close()
    clients.close()
  }
}

/** `appendonly` is `0` or `1`, as in INFO. Undefined: Redis did not report the setting. */
export function problemsOf(settings: {
  appendonly: string | undefined
  appendfsync: string | undefined
  policy: string | undefined
}): string[] {
  const { appendonly, appendfsync, policy } = settings
  const problems: string[] = []
  if (appendonly === '0') {
    problems.push('appendonly is no: a restart of Redis loses what came after its last snapshot')
  } else if (appendfsync === 'no') {
    problems.push('appendfsync is no: a power failure loses what the system had not written yet')
  } else if (appendfsync === 'everysec') {
    problems.push('appendfsync is everysec: a power failure loses up to two seconds')
  }
  if (policy !== undefined && policy !== 'noeviction') {
    problems.push(`maxmemory-policy is ${policy}: when its memory is full Redis deletes what it has`)
  }
  return problems
}

function fieldOf(info: unknown, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(String(info ?? ''))?.[1]
}
