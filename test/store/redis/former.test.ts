import t from 'tap'
import { moveFormerStore } from '../../../store/redis/former.ts'
import { formerKeysOf, keysOf } from '../../../store/redis/script.ts'
import { connect } from '../../clients.ts'
import { fillRedis, readFormerStore } from '../../former-release.ts'
import { startRedis, withoutRedis } from '../../redis-server.ts'
import { startTestHub } from '../../start-hub.ts'

const formerKeys = formerKeysOf('hub:test')

t.test('the store of the release before is moved', { skip: withoutRedis }, async (t) => {
  const redis = await startRedis(t)
  const client = redis.client()
  const of = { server: { url: redis.url }, project: 'hub', stage: 'test', watchMs: 200, onMembers: () => {} }
  const former = readFormerStore('redis')

  await t.test('not where there is none', async (t) => {
    await moveFormerStore(of)
    t.equal(await client.dbsize(), 0)
  })

  await fillRedis(client, former)
  await t.test('not while nodes of that release run', async (t) => {
    const sign = (await client.xadd(formerKeys.log, '*', 'a', 'b')) ?? ''
    let signed: Promise<unknown> | undefined
    await t.rejects(
      moveFormerStore({
        ...of,
        // Long enough: Redis takes the sign before the second look.
        watchMs: 1_000,
        onMembers() {
          signed = client.hset(formerKeys.head, 'id', sign)
        },
      }),
      /^nodes of the former release run on the Redis on 127.0.0.1:\d+ \(vm:\d+\): stop all of them, then start this one again$/,
    )
    await signed
    t.equal(await client.exists(keysOf('hub:test').values), 0)
  })

  await t.test('at once, and by one of several nodes that start', async (t) => {
    const moved = await Promise.all([moveFormerStore(of), moveFormerStore(of)])
    t.same(moved.sort(), [false, true])
    t.equal(await client.hlen(keysOf('hub:test').values), former.entries.length)
    const kept = [formerKeys.head, keysOf('hub:test').values, keysOf('hub:test').keys]
    t.same((await client.keys('*')).sort(), kept.sort())
  })

  await t.test('and the nodes of that release do not start there again', async (t) => {
    await t.rejects(client.hget(formerKeys.head, 'id'), /WRONGTYPE/, 'it is what they ask first')
  })
})

t.test('two nodes that start at once take over the store together', { skip: withoutRedis }, async (t) => {
  const redis = await startRedis(t)
  const former = readFormerStore('redis')
  await fillRedis(redis.client(), {
    ...former,
    entries: former.entries.filter(([key]) => !key.startsWith('member/')),
  })
  const settings = { HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' }
  const hubs = await Promise.all([startTestHub(t, settings), startTestHub(t, settings)])
  const done = hubs.flatMap(({ lines }) => lines.filter(({ msg }) => String(msg).includes('is taken over')))
  t.match(done, [{ messages: 20, retained: 19, sessions: 3 }], 'one of them has done it')
  for (const hub of hubs) {
    const { client, received } = await connect(t, hub, former.subscriber)
    await client.subscribeAsync('radio/#', { qos: 1 })
    await received.count(9)
  }
  const [, second] = hubs
  const app = await connect(t, second, former.subscriber, { clientId: 'app', clean: false })
  await app.received.count(18)
})
