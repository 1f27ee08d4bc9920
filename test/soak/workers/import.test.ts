import { join } from 'node:path'
import t from 'tap'
import { runHubctl } from '../../cli/run-hubctl.ts'
import { startRedis, withoutRedis } from '../../redis-server.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { askNode, temporaryDirectory } from '../../start-hub.ts'
import { until } from '../../until.ts'
import { startWorkers, workersOn } from './start-workers.ts'

t.test('a hub with workers takes in an export at its start', { skip: withoutRedis }, async (t) => {
  const { hub: former, subscriber } = await startWorkers(t)
  const { username } = await subscriber('radio/#')
  const file = join(await temporaryDirectory(t), 'hub.export')
  const exported = await runHubctl(['export', file, '--socket', former.adminSocket])
  t.equal(exported.code, 0, exported.stderr)
  await former.stop('SIGTERM')

  const redis = await startRedis(t)
  const home = await temporaryDirectory(t)
  const env = workersOn(redis.url)
  const running = await spawnHub(t, home, env)
  const refused = await runHubctl(['import', file, '--socket', running.adminSocket])
  t.equal(refused.code, 1)
  t.match(refused.stderr, /takes in an export at its start only: stop it, run hubctl import FILE --stopped/)
  await running.stop('SIGTERM')
  const of = { ...env, HUB_DATA_DIR: join(home, 'data') }
  const waiting = await runHubctl(['import', file, '--stopped'], { env: of })
  t.equal(waiting.code, 0, waiting.stderr)

  const next = await spawnHub(t, home, env)
  t.equal(next.messages.filter((message) => message === 'the export is taken in').length, 1)
  await until(async () => {
    const credentials = await askNode<{ username: string }[]>(next.adminSocket, 'credentials.list', {})
    return credentials.some((credential) => credential.username === username)
  })
})
