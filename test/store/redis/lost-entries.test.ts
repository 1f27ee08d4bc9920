import { cpSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { keyOf } from '../../../store/commit.ts'
import { type Change, ConditionFailed, type SharedStore } from '../../../store/store.ts'
import { onRedis, type RedisServer } from '../../redis-server.ts'
import { entries, openRedis } from '../open-redis.ts'

const mustStartAgain = { message: /must start again/ }
const numbered = (value: string): Change => ({ put: 'n/', value, numbered: { nth: 0, at: 'key' } })

/** How a loading node learns of the newest entries of the store. */
const ways: readonly [name: string, learn: (store: SharedStore) => Promise<unknown>][] = [
  ['range', (store) => entries(store, 'n/')],
  ['last', (store) => store.last('n/', 1)],
  ['number', (store) => store.lastNumber()],
  ['own commit', (store) => store.commit([numbered('own')])],
  ['failed condition', (store) => store.commit([{ check: 'n/', when: 'present' }]).catch(onlyFailed)],
]

onRedis('a node that is loading while Redis loses its newest entries', async (t, redis) => {
  const spaces = ways.flatMap(([name, learn]) => [
    { project: `${name}, loaded`, learn },
    { project: `${name}, loading`, learn },
  ])
  const nodes = await Promise.all(
    spaces.map(async (space) => {
      const writer = await openRedis(t, redis.url, space)
      await writer.commit([numbered('kept')])
      return { ...space, writer }
    }),
  )
  const failOver = keepForFailover(redis)
  const loading = await Promise.all(
    nodes.map(async ({ project, learn, writer }) => {
      const store = await openRedis(t, redis.url, { project })
      await writer.commit([numbered('lost')])
      await learn(store)
      await writer.close()
      return { project, store }
    }),
  )
  await failOver()
  const after = await Promise.all(
    loading.map(async ({ project, store }) => {
      const other = await openRedis(t, redis.url, { project })
      t.equal(await other.commit([numbered('after')]), 2, 'the numbers of lost entries are taken again')
      return { project, store, other }
    }),
  )

  for (const { project, store, other } of after.filter(({ project }) => project.endsWith('loaded'))) {
    t.test(`starts again when it has loaded them: ${project}`, async (t) => {
      const told: string[] = []
      const gaps: Error[] = []
      store.follow(
        (changes) => told.push(...changes.map(keyOf)),
        (reason) => gaps.push(reason),
      )
      for (const key of ['k/1', 'k/2']) {
        await other.commit([{ put: key, value: 'x' }])
        await store.catchUp()
      }
      t.match(gaps, [{ message: /the log of changes no longer has the entry/ }])
      t.equal(gaps.length, 1, 'and reads on')
      t.equal(told.at(-1), 'k/2')
      await t.rejects(store.commit([numbered('later')]), mustStartAgain)
    })
  }

  for (const { project, store } of after.filter(({ project }) => project.endsWith('loading'))) {
    t.test(`learns nothing more, and changes nothing: ${project}`, async (t) => {
      await t.rejects(entries(store, 'n/'), mustStartAgain)
      await t.rejects(store.last('n/', 1), mustStartAgain)
      await t.rejects(store.lastNumber(), mustStartAgain)
      await t.rejects(store.commit([{ put: 'k/1', value: 'of a lost past' }]), mustStartAgain)
    })
  }
})

onRedis('a node that reads old entries goes on', async (t, redis) => {
  const options = { logBytes: 20_000 }
  const [store, writer] = [await openRedis(t, redis.url, options), await openRedis(t, redis.url, options)]
  store.follow(() => undefined, t.fail)
  await writer.commit([numbered('old')])
  t.equal((await entries(store, 'n/')).size, 1)
  for (let count = 0; count < 100; count++) {
    await writer.commit([{ put: `k/${count}`, value: Buffer.alloc(1_000) }])
  }
  await store.catchUp()
  t.equal((await entries(store, 'k/')).size, 100, 'although the log lacks what it read before')
  t.equal(await store.lastNumber(), 1)
})

/** Keeps what Redis has now. The returned function sets Redis back to that. */
function keepForFailover(redis: RedisServer): () => Promise<void> {
  const [current, kept] = ['appendonlydir', 'kept'].map((name) => join(redis.directory, name))
  if (!current || !kept) throw new Error('no directory')
  cpSync(current, kept, { recursive: true })
  return async () => {
    await redis.kill()
    rmSync(current, { recursive: true })
    renameSync(kept, current)
    await redis.restart()
  }
}

function onlyFailed(error: unknown): void {
  if (!(error instanceof ConditionFailed)) throw error
}
