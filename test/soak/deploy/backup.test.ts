import { cp, mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { connect, connectPublisher } from '../../clients.ts'
import { control, institutions, playing, playingTopic, station } from '../../events.ts'
import { startRedis, withoutRedis } from '../../redis-server.ts'
import { type Issued, startTestHub, type TestHub, temporaryDirectory } from '../../start-hub.ts'

/*
 * Backups as docs/deployment.md describes them, restored into a new directory or a new Redis.
 */
const [institution = ''] = institutions
const livestream = station()

t.test('the data directory of a node that is stopped', async (t) => {
  const hub = await startTestHub(t)
  const known = await fill(t, hub)
  await hub.close()
  const fresh = await temporaryDirectory(t)
  await cp(join(hub.home, 'data'), join(fresh, 'data'), { recursive: true })
  const restored = await startTestHub(t, {}, fresh)
  await isAllThere(t, restored, known)
  t.match(await restored.ask('audit'), [{ action: 'credentials.add' }, { action: 'credentials.add' }])
})

t.test('Redis', { skip: withoutRedis }, async (t) => {
  const env = (url: string) => ({ HUB_REDIS_URL: url, HUB_PUBLIC_URL: 'https://hub.example' })

  t.test('the append-only files, copied while it runs', async (t) => {
    const redis = await startRedis(t)
    const hub = await startTestHub(t, env(redis.url))
    const known = await fill(t, hub)
    const client = redis.client()
    await client.bgrewriteaof()
    await client.config('SET', 'auto-aof-rewrite-percentage', 0)
    await ended(client, 'aof_rewrite_in_progress')
    const copy = await mkdtemp(join(redis.directory, 'copy-'))
    await cp(join(redis.directory, 'appendonlydir'), join(copy, 'appendonlydir'), { recursive: true })
    await hub.close()
    const other = await startRedis(t, [`dir ${copy}`])
    await isAllThere(t, await startTestHub(t, env(other.url)), known)
  })

  t.test('a snapshot, which Redis reads only without an append-only file', async (t) => {
    const redis = await startRedis(t)
    const hub = await startTestHub(t, env(redis.url))
    const known = await fill(t, hub)
    const client = redis.client()
    await client.bgsave()
    await ended(client, 'rdb_bgsave_in_progress')
    await hub.close()
    const copy = await mkdtemp(join(redis.directory, 'copy-'))
    await cp(join(redis.directory, 'dump.rdb'), join(copy, 'dump.rdb'))
    const trap = await mkdtemp(join(redis.directory, 'trap-'))
    await cp(join(redis.directory, 'dump.rdb'), join(trap, 'dump.rdb'))
    t.equal(await (await startRedis(t, [`dir ${trap}`])).client().dbsize(), 0, 'with appendonly it is empty')

    const reading = await startRedis(t, [`dir ${copy}`, 'appendonly no'])
    const writing = reading.client()
    await writing.config('SET', 'appendonly', 'yes')
    await ended(writing, 'aof_rewrite_in_progress')
    await reading.kill()
    const other = await startRedis(t, [`dir ${copy}`])
    await isAllThere(t, await startTestHub(t, env(other.url)), known)
  })
})

type Client = ReturnType<Awaited<ReturnType<typeof startRedis>>['client']>

async function ended(client: Client, field: string): Promise<void> {
  const isOver = async () => {
    const info = await client.info('persistence')
    return info.includes(`${field}:0`) && !info.includes('scheduled:1')
  }
  while (!(await isOver())) await delay(20)
}

interface Known {
  listener: Issued
  studio: Issued
}

/** Gives a hub credentials, a retained value, and messages that wait for an offline session. */
async function fill(t: Test, hub: TestHub): Promise<Known> {
  const known = { listener: await hub.subscriber('radio/#'), studio: await hub.publisher([institution]) }
  const app = await connect(t, hub, known.listener, { clientId: 'app', clean: false })
  await app.client.subscribeAsync('radio/+/control', { qos: 1 })
  await app.client.endAsync()
  const sender = await connectPublisher(t, hub, known.studio, institution)
  t.match(await sender.publish(playing(livestream, { title: 'Before' })), { outcome: 'published' })
  for (const name of ['one', 'two']) await sender.publish(control(livestream, { name }))
  await sender.client.endAsync()
  return known
}

async function isAllThere(t: Test, hub: TestHub, { listener, studio }: Known): Promise<void> {
  const app = await connect(t, hub, listener, { clientId: 'app', clean: false })
  await app.received.count(2)
  t.same(
    app.received.all.map(({ json }) => json.name),
    ['one', 'two'],
    'what waited for a session',
  )
  const player = await connect(t, hub, listener)
  await player.client.subscribeAsync(playingTopic(livestream), { qos: 1 })
  t.match(await player.received.until(() => true), { json: { title: 'Before' }, packet: { retain: true } })
  const sender = await connectPublisher(t, hub, studio, institution)
  t.match(await sender.publish(playing(livestream, { title: 'After' })), { outcome: 'published' })
  await player.received.until(({ json }) => json.title === 'After')
}
