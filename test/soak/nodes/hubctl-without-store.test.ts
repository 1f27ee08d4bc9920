import { call } from '../../../cli/connection.ts'
import { openApi } from '../../bridge-https/api.ts'
import { onRedis } from '../../redis-server.ts'
import { startTestHub, type TestHub } from '../../start-hub.ts'
import { until } from '../../until.ts'

interface Status {
  store: { driver: string; ok: boolean; problem: string | null }
}

/** One answer of the node. `hub.ask` would ask again as long as the store does not answer. */
const answerOf = (hub: TestHub, command: string, args: object = {}) =>
  call(hub.adminSocket, command, { ...args }, 'tester')

onRedis('while Redis is away hubctl says so, and status still answers', async (t, redis) => {
  const hub = await startTestHub(t, { HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' })
  const api = await openApi(t, hub)
  const { username } = await hub.subscriber('radio/#')
  const store = async () => (await hub.ask<Status>('status')).store
  t.same(await store(), { driver: 'redis', ok: true, problem: null, isReplaced: false })
  const isBack = () => until(async () => (await store()).ok)

  redis.pause()
  const commands: [command: string, args: object][] = [
    ['credentials.list', {}],
    ['credentials.revoke', { username }],
    ['clients.list', {}],
    ['audit', {}],
  ]
  const refused = commands.map(async ([command, args]) => {
    const message = /^the store does not answer: .*\. Nothing was done; hubctl status still answers$/
    t.match(await answerOf(hub, command, args), { error: { message } }, command)
  })
  await Promise.all(refused)
  await until(async () => (await store()).problem !== null)
  t.match(await store(), { driver: 'redis', ok: false, problem: String })
  t.match(await hub.ask('config'), { redisUrl: String })
  redis.resume()
  await isBack()

  await redis.kill()
  await until(async () => /Redis is not reachable/.test((await store()).problem ?? ''))
  t.match(await answerOf(hub, 'credentials.list'), {
    error: { message: /^the store does not answer: Redis is not reachable/ },
  })
  t.match((await api.call('GET', '/health')).json, { status: 'unavailable', store: false })
  await redis.restart()
  await isBack()
  t.match(await hub.ask('credentials.list'), [{ username }], 'and nothing was changed')
})

onRedis('while the log of changes cannot be read the node says so, and why', async (t, redis) => {
  const hub = await startTestHub(t, { HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' })
  const api = await openApi(t, hub)
  const store = async () => (await hub.ask<Status>('status')).store
  const logged = (message: string) => hub.lines.filter(({ msg }) => msg === message)
  const unread = 'the log of changes of Redis cannot be read: nothing is acknowledged'
  const problem = /^the log of changes of Redis cannot be read \(NOPERM /

  await redis.client().call('ACL', ['SETUSER', 'default', '-xread'])
  await until(() => logged(unread).length > 0)
  t.match(await store(), { ok: false, problem })
  t.match(await answerOf(hub, 'credentials.list'), {
    error: { message: /^the store does not answer: the log of changes of Redis cannot be read \(NOPERM / },
  })
  t.match((await api.call('GET', '/health')).json, { status: 'unavailable', store: false })

  await redis.client().call('ACL', ['SETUSER', 'default', '+xread'])
  await until(() => logged('the log of changes of Redis is read again').length > 0)
  await until(async () => (await store()).ok)
  t.match(logged(unread), [{ level: 50, reason: /^NOPERM / }])
})
