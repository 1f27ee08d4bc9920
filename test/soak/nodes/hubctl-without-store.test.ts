import t from 'tap'
import { openApi } from '../../bridge-https/api.ts'
import { until } from '../../nodes/fleet.ts'
import { startRedis, withoutRedis } from '../../redis-server.ts'
import { startTestHub } from '../../start-hub.ts'

interface Status {
  store: { driver: string; ok: boolean; problem: string | null }
}

t.test('while Redis is away hubctl says so, and status still answers', { skip: withoutRedis }, async (t) => {
  const redis = await startRedis(t)
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
    await t.rejects(
      hub.ask(command, { ...args }),
      { message: /^the store does not answer: .*\. Nothing was done; hubctl status still answers$/ },
      command,
    )
  })
  await Promise.all(refused)
  await until(async () => (await store()).problem !== null)
  t.match(await store(), { driver: 'redis', ok: false, problem: String })
  t.match(await hub.ask('config'), { redisUrl: String })
  redis.resume()
  await isBack()

  await redis.kill()
  await until(async () => /Redis is not reachable/.test((await store()).problem ?? ''))
  await t.rejects(hub.ask('credentials.list'), {
    message: /^the store does not answer: Redis is not reachable/,
  })
  t.match((await api.call('GET', '/health')).json, { status: 'unavailable', store: false })
  await redis.restart()
  await isBack()
  t.match(await hub.ask('credentials.list'), [{ username }], 'and nothing was changed')
})
