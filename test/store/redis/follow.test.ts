import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { keyOf } from '../../../store/commit.ts'
import { keysOf } from '../../../store/redis/script.ts'
import type { SharedStore, Told } from '../../../store/store.ts'
import { onRedis, type RedisServer, startRedis } from '../../redis-server.ts'
import { entries, numbered, openRedis, text } from '../open-redis.ts'

onRedis('following', async (t, shared) => {
  t.test('what was given up and applied all the same is told to its node as well', async (t) => {
    const redis = await startRedis(t)
    const [writer, follower] = [
      await openRedis(t, redis.url, { timeoutMs: 1_500 }),
      await openRedis(t, redis.url),
    ]
    const [own, { told, until }] = [follow(writer), follow(follower)]
    await writer.commit([{ put: 'k/0', value: 'known' }])
    redis.pause()
    const [early, late] = [
      writer.commit([{ tell: 'n', value: 'early' }]),
      writer.commit([{ put: 'k/1', value: 'x' }, { del: 'k/0' }]),
    ]
    await t.rejects(early, { message: /may still be applied/ })
    await t.rejects(late, { message: /may still be applied/ })
    redis.resume()
    await until(() => told.length >= 4)
    await own.until(() => own.told.length >= 3)
    t.strictSame(told, ['put k/0=known', ...own.told])
    t.strictSame(own.told, ['tell n=early', 'put k/1=x', 'del k/0'])
    await writer.commit([{ put: 'k/2', value: 'known' }])
    await until(() => told.length >= 5)
    t.equal(own.told.length, 3)
  })

  t.test('a commit that was given up is told before a later one of its group is settled', async (t) => {
    const redis = await startRedis(t)
    const writer = await openRedis(t, redis.url, { timeoutMs: 1_500 })
    const seen: string[] = []
    const note = (what: string) => () => void seen.push(what)
    writer.follow((changes) => seen.push(...changes.map((change) => `told ${keyOf(change)}`)), t.fail)
    await writer.commit([{ put: 'k/0', value: '' }])
    redis.pause()
    // While `first` waits for Redis, the others become one group. Of this group, only `second` is given up.
    const first = writer.commit([{ put: 'k/1', value: '' }]).catch(note('first given up'))
    await delay(100)
    const second = writer.commit([{ put: 'k/2', value: '' }]).catch(note('second given up'))
    await delay(900)
    const behind = [3, 4].map((nth) => writer.commit([{ put: `k/${nth}`, value: '' }]).then(note(`${nth}`)))
    await second
    redis.resume()
    await Promise.all([first, ...behind])
    t.strictSame(seen, ['first given up', 'second given up', 'told k/1', 'told k/2', '3', '4'])
  })

  t.test('if a given-up commit cannot be taken over, those behind it are settled all the same', async (t) => {
    const redis = await startRedis(t)
    const writer = await openRedis(t, redis.url, { timeoutMs: 1_500 })
    const take = (changes: readonly Told[]) => {
      if (changes.some((change) => keyOf(change) === 'k/2')) throw new Error('refused')
    }
    const gap = new Promise<Error>((resolve) => writer.follow(take, resolve))
    await writer.commit([{ put: 'k/0', value: '' }])
    redis.pause()
    const first = writer.commit([{ put: 'k/1', value: '' }]).catch(() => 'given up')
    await delay(100)
    const second = writer.commit([{ put: 'k/2', value: '' }]).catch(() => 'given up')
    await delay(900)
    const behind = [3, 4].map((nth) => writer.commit([{ put: `k/${nth}`, value: '' }]))
    await second
    redis.resume()
    t.equal(await first, 'given up')
    t.match((await gap).message, 'could not be taken over')
    await Promise.all(behind)
  })

  t.test('what others commit is told in commit order, exactly once', async (t) => {
    const space = { project: 'order' }
    const [writer, follower] = [await openRedis(t, shared.url, space), await openRedis(t, shared.url, space)]
    const { told, until } = follow(follower)
    const expected = numbered(500).flatMap((key) => [`put ${key}=${key}`, `tell event=${key}`, `del ${key}`])
    await Promise.all(
      numbered(500).map((key) =>
        writer.commit([{ put: key, value: key }, { tell: 'event', value: key }, { del: key }]),
      ),
    )
    await until(() => told.length >= expected.length)
    t.strictSame(told, expected)
  })

  t.test('a quiet change is told to nobody, and has no entry of its own', async (t) => {
    const space = { project: 'quiet' }
    const [writer, follower] = [await openRedis(t, shared.url, space), await openRedis(t, shared.url, space)]
    const { told, until } = follow(follower)
    follow(writer)
    await writer.commit([{ put: 'k/loud', value: '1' }])
    const dumped = writer.dump()[Symbol.asyncIterator]()
    const first = await dumped.next()
    await writer.commit([{ put: 'k/quiet', value: '1', when: 'absent', isQuiet: true }])
    await t.rejects(writer.commit([{ put: 'k/quiet', value: '2', when: 'absent', isQuiet: true }]))
    t.equal(await text(follower, 'k/quiet'), '1')
    await writer.commit([
      { put: 'k/with', value: '1', isQuiet: true },
      { put: 'k/loud', value: '2' },
      { del: 'k/quiet', isQuiet: true },
    ])
    await until(() => told.length >= 2)
    t.strictSame(told, ['put k/loud=1', 'put k/loud=2'])
    t.equal(await follower.get('k/quiet'), undefined)
    t.match(first.value, [{ key: 'k/loud' }])
    const next = await dumped.next()
    t.match(next.value, [{ key: 'k/with' }, { key: 'k/loud' }, { key: 'k/quiet', value: undefined }])
  })

  t.test('values keep every byte', async (t) => {
    const space = { project: 'bytes' }
    const [writer, follower] = [await openRedis(t, shared.url, space), await openRedis(t, shared.url, space)]
    const value = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
    const told = new Promise<readonly Told[]>((resolve) => follower.follow(resolve, t.fail))
    await writer.commit([
      { put: 'k/ä🎵\0', value },
      { tell: '', value },
      { put: 'k/empty', value: '' },
    ])
    t.strictSame(await told, [
      { put: 'k/ä🎵\0', value },
      { tell: '', value },
      { put: 'k/empty', value: Buffer.alloc(0) },
    ])
  })

  t.test('everything since the store was opened is told, however late it is followed', async (t) => {
    const space = { project: 'late' }
    const before = await openRedis(t, shared.url, space)
    await before.commit([{ put: 'k/before', value: 'x' }])
    const follower = await openRedis(t, shared.url, space)
    await before.commit([{ put: 'k/between', value: 'x' }])
    t.equal((await entries(follower, 'k/')).size, 2)
    const { told, until } = follow(follower)
    await before.commit([{ put: 'k/after', value: 'x' }])
    await until(() => told.length >= 2)
    t.strictSame(told, ['put k/between=x', 'put k/after=x'])
  })

  t.test('a node is not told its own commits, nor what had no effect', async (t) => {
    const space = { project: 'effect' }
    const [writer, follower] = [await openRedis(t, shared.url, space), await openRedis(t, shared.url, space)]
    const own = follow(writer)
    const { told, until } = follow(follower)
    const at = (time: number) => ({ order: { time, horizon: 1_000 } })
    await writer.commit([{ put: 'k/1', value: 'new', ...at(5) }])
    await writer.commit([
      { put: 'k/1', value: 'old', ...at(4) },
      { tell: 'live', value: 'old' },
      { del: 'k/1', ...at(3) },
      { put: 'k/2', value: 'x', ...at(1) },
    ])
    await follower.commit([{ put: 'k/3', value: 'x' }])
    await until(() => told.length >= 3)
    await own.until(() => own.told.length >= 1)
    t.strictSame(told, ['put k/1=new', 'tell live=old', 'put k/2=x'])
    t.strictSame(own.told, ['put k/3=x'])
  })

  t.test('the memory of every node ends as the store', async (t) => {
    const space = { project: 'memory' }
    const stores = [1, 2, 3].map(() => openRedis(t, shared.url, space))
    const nodes = (await Promise.all(stores)).map((store) => {
      const memory = new Map<string, string>()
      let count = 0
      store.follow((changes) => {
        for (const change of changes) if ('put' in change) memory.set(change.put, change.value.toString())
        count += changes.length
      }, t.fail)
      return { store, memory, told: () => count }
    })
    const rounds = 300
    await Promise.all(
      nodes.flatMap(({ store, memory }, node) =>
        Array.from({ length: rounds }, async (_, round) => {
          if (round % 3 === 0) await nextTurn()
          const [key, value] = [`k/${round % 4}`, `${node}/${round}`]
          await store.commit([{ put: key, value }])
          memory.set(key, value)
        }),
      ),
    )
    for (const { told } of nodes) while (told() < 2 * rounds) await nextTurn()
    for (const { store, memory } of nodes) {
      t.strictSame(new Map([...memory].sort()), await entries(store, 'k/'))
    }
  })

  t.test('nothing is told twice or left out when connections are lost', async (t) => {
    const space = { project: 'kill' }
    const [writer, follower] = [await openRedis(t, shared.url, space), await openRedis(t, shared.url, space)]
    const client = shared.client()
    const { told, until } = follow(follower)
    const all = numbered(300)
    for (const [index, key] of all.entries()) {
      if (index % 60 === 30) await killConnections(shared, 'hub-follow')
      if (index % 60 === 0) await killConnections(shared, 'hub-store')
      await writer.commit([{ tell: 'n', value: key }])
    }
    await until(() => told.length >= all.length)
    t.strictSame(
      told,
      all.map((key) => `tell n=${key}`),
    )
    client.disconnect()
  })

  t.test('nor when Redis is killed and comes back', async (t) => {
    const redis = await startRedis(t)
    // Redis may take longer to start than a commit usually waits.
    const patient = { timeoutMs: 30_000 }
    const [writer, follower] = [
      await openRedis(t, redis.url, patient),
      await openRedis(t, redis.url, patient),
    ]
    const { told, until } = follow(follower)
    const all = numbered(400)
    const committing = commitOneByOne(writer, all)
    for (const limit of [50, 150, 250]) {
      await until(() => told.length >= limit)
      await redis.restart()
    }
    await committing
    await until(() => told.length >= all.length)
    t.strictSame(
      told,
      all.map((key) => `tell n=${key}`),
    )
  })

  t.test('who was away for longer than the log reaches back has to load again', async (t) => {
    const space = { project: 'gap', logBytes: 20_000 }
    const [writer, follower] = [await openRedis(t, shared.url, space), await openRedis(t, shared.url, space)]
    await writer.commit([{ put: 'k/first', value: 'x' }])
    const late = await openRedis(t, shared.url, space)
    for (const key of numbered(100)) await writer.commit([{ put: key, value: Buffer.alloc(1_000) }])
    for (const store of [follower, late]) {
      const { told, gaps, until } = follow(store, { gapsExpected: true })
      await until(() => gaps.length > 0)
      t.match(gaps, [{ message: /the log of changes/ }])
      t.equal((await entries(store, 'n/')).size, 100, 'it is all there')
      await writer.commit([{ put: 'k/after', value: 'x' }])
      await until(() => told.length > 0)
      t.strictSame(told, ['put k/after=x'])
      t.equal(gaps.length, 1)
      await t.rejects(store.commit([{ put: 'k/own', value: 'x' }]), { message: /must start again/ })
    }
  })

  t.test('what Redis lost has to be loaded again', async (t) => {
    const redis = await startRedis(t)
    const follower = await openRedis(t, redis.url)
    const { told, gaps, until } = follow(follower, { gapsExpected: true })
    /** Writes as a node that knows nothing of what Redis lost. */
    const write = async (key: string) => (await openRedis(t, redis.url)).commit([{ put: key, value: 'x' }])
    await write('k/1')
    await until(() => told.length === 1)
    await redis.client().flushall()
    await write('k/2')
    await until(() => gaps.length === 1)
    await write('k/3')
    await until(() => told.at(-1) === 'put k/3=x')
    await redis.kill()
    rmSync(join(redis.directory, 'appendonlydir'), { recursive: true })
    await redis.restart()
    await until(() => gaps.length === 2)
    await write('k/4')
    await until(() => told.at(-1) === 'put k/4=x')
    // `k/2` is told as well if the follower noticed the loss before it was written.
    const others = told.filter((change) => change !== 'put k/2=x')
    t.strictSame(others, ['put k/1=x', 'put k/3=x', 'put k/4=x'])
    t.equal(await text(follower, 'k/4'), 'x')
  })

  t.test('a commit whose place in the log was lost before this node had read it is rejected', async (t) => {
    const redis = await startRedis(t)
    const [store, client] = [await openRedis(t, redis.url), redis.client()]
    const { gaps, until } = follow(store, { gapsExpected: true })
    await store.commit([{ put: 'k/1', value: 'x' }])
    await killConnections(redis, 'hub-follow')
    const committed = store.commit([{ put: 'k/2', value: 'x' }])
    while ((await client.hget(keysOf('hub:test').values, 'k/2')) === null) await nextTurn()
    await client.flushall()
    await t.rejects(committed, { message: /must start again/ })
    await until(() => gaps.length === 1)
  })

  t.test('a node whose newest commit alone was lost has to load again', async (t) => {
    const redis = await startRedis(t)
    const [store, other] = [await openRedis(t, redis.url), await openRedis(t, redis.url)]
    const client = redis.client()
    const keys = keysOf('hub:test')
    const { gaps, until } = follow(store, { gapsExpected: true })
    await store.commit([{ put: 'k/1', value: 'x' }])
    const before = await client.hget(keys.head, 'id')
    await killConnections(redis, 'hub-follow')
    const committed = store.commit([{ put: 'k/2', value: 'x' }])
    while ((await client.hget(keys.values, 'k/2')) === null) await nextTurn()
    // As after a failover to a replica that has all but the newest entry.
    const lostId = String(await client.hget(keys.head, 'id'))
    await client.multi().xdel(keys.log, lostId).hset(keys.head, 'id', String(before)).exec()
    await other.commit([{ put: 'k/3', value: 'x' }])
    await t.rejects(committed, { message: /must start again/ })
    await until(() => gaps.length === 1)
  })

  t.test('after a gap catching up takes as long as before', async (t) => {
    const space = { project: 'after a gap', logBytes: 20_000 }
    const [writer, follower] = [await openRedis(t, shared.url, space), await openRedis(t, shared.url, space)]
    for (const key of numbered(100)) await writer.commit([{ put: key, value: Buffer.alloc(1_000) }])
    const { told, gaps, until } = follow(follower, { gapsExpected: true })
    await until(() => gaps.length > 0)
    await killConnections(shared, 'hub-follow')
    await writer.commit([{ put: 'k/1', value: 'x' }])
    await follower.catchUp()
    t.strictSame(told, ['put k/1=x'])
    t.equal(gaps.length, 1)
  })

  t.test('a listener that throws has to load again', async (t) => {
    const space = { project: 'throws' }
    const [writer, follower] = [await openRedis(t, shared.url, space), await openRedis(t, shared.url, space)]
    const seen: number[] = []
    const gap = new Promise<Error>((resolve) => {
      follower.follow((changes) => {
        seen.push(changes.length)
        throw new Error('cannot')
      }, resolve)
    })
    await writer.commit([{ put: 'k/1', value: 'x' }])
    t.match(await gap, { cause: { message: 'cannot' } })
    await writer.commit([{ put: 'k/2', value: 'x' }])
    while (seen.length < 2) await nextTurn()
  })

  t.test('a commit is told at once', async (t) => {
    const space = { project: 'latency' }
    const [writer, follower] = [await openRedis(t, shared.url, space), await openRedis(t, shared.url, space)]
    const { told } = follow(follower)
    const client = shared.client()
    await client.ping()
    /** How many answers of Redis came before each, counted from the answer to its commit. */
    const answers: number[] = []
    for (const [index, key] of numbered(50).entries()) {
      await writer.commit([{ tell: 'n', value: key }])
      let count = 0
      for (; told.length <= index; count++) await client.ping()
      answers.push(count)
    }
    const median = answers.sort((a, b) => a - b)[25] ?? Number.NaN
    t.ok(median < 10, `${median} answers`)
  })

  t.test('a store is followed once', async (t) => {
    const store = await openRedis(t, shared.url, { project: 'once' })
    follow(store)
    t.throws(() => follow(store), { message: /followed already/ })
    await store.close()
    t.throws(() => follow(store))
  })
})

function follow(store: SharedStore, { gapsExpected = false } = {}) {
  const told: string[] = []
  const gaps: Error[] = []
  let changed = () => {}
  store.follow(
    (changes) => {
      told.push(...changes.map(textOf))
      changed()
    },
    (reason) => {
      gaps.push(reason)
      changed()
    },
  )
  return {
    told,
    gaps,
    async until(isReached: () => boolean): Promise<void> {
      while (!isReached()) {
        if (gaps[0] && !gapsExpected) throw gaps[0]
        await new Promise<void>((resolve) => {
          changed = resolve
        })
      }
    },
  }
}

function textOf(change: Told): string {
  if ('put' in change) return `put ${change.put}=${change.value}`
  if ('tell' in change) return `tell ${change.tell}=${change.value}`
  return `del ${change.del}`
}

async function commitOneByOne(store: SharedStore, values: readonly string[]): Promise<void> {
  for (const value of values) await store.commit([{ tell: 'n', value }])
}

async function killConnections(redis: RedisServer, name: string): Promise<void> {
  const client = redis.client()
  if (client.status !== 'ready') await once(client, 'ready')
  for (const line of String(await client.client('LIST')).split('\n')) {
    const [, id] = /^id=(\d+) /.exec(line) ?? []
    if (id && line.includes(` name=${name} `)) await client.client('KILL', 'ID', id)
  }
  client.disconnect()
}
