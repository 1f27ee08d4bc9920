import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'
import t from 'tap'
import { openRedisStore } from '../../../../store/redis/redis.ts'
import { keysOf } from '../../../../store/redis/script.ts'
import { freePort } from '../../../free-port.ts'
import { patienceMs } from '../../../patience.ts'
import { startRedis, withoutRedis } from '../../../redis-server.ts'
import { entries, numbered, openRedis, text } from '../../../store/open-redis.ts'
import { startNetwork } from '../../../store/slow-network.ts'

const put = (key: string, value = 'x') => ({ put: key, value })

t.test('faults of Redis', { skip: withoutRedis }, async (t) => {
  t.test('without Redis a store does not open, and says why', async (t) => {
    const port = await freePort()
    const awakeMs = countAwake()
    const error = await openRedisStore({
      server: { url: `redis://hub:geheim@127.0.0.1:${port}` },
      project: 'hub',
      stage: 'test',
      timeoutMs: 2_000,
    }).catch((error: unknown) => error)
    t.ok(awakeMs() < 5_000)
    t.match(error, {
      message: `the Redis on 127.0.0.1:${port} cannot be used`,
      cause: { message: /^Redis did not answer within 2000 ms \(connect ECONNREFUSED/ },
    })
    t.notMatch(inspect(error, { depth: 9, showHidden: true }), /geheim/)
  })

  t.test('while Redis is away everything rejects in time, and then it works again', async (t) => {
    const redis = await startRedis(t)
    const states: boolean[] = []
    const store = await openRedis(t, redis.url, {
      timeoutMs: 2_000,
      onConnection: ({ up }) => states.push(up),
    })
    await store.commit([put('k/before')])
    await redis.kill()
    while (states.length === 0) await delay(5)
    const awakeMs = countAwake()
    const message = /^not committed, nothing of it was applied: Redis did not answer within 2000 ms \(.+\)$/
    await Promise.all([
      ...numbered(20).map((key) => t.rejects(store.commit([put(key)]), { message })),
      t.rejects(store.get('k/before'), { message: /^Redis did not answer within 2000 ms/ }),
      t.rejects(entries(store, 'k/'), { message: /^Redis did not answer within 2000 ms/ }),
    ])
    t.ok(awakeMs() < 5_000)
    await redis.restart()
    t.equal(await eventually(() => text(store, 'k/before')), 'x')
    await store.commit([put('k/after')])
    t.strictSame([...(await entries(store, 'n/')).keys()], [], 'what was rejected so is not applied later')
    t.strictSame(states, [false, true])
  })

  t.test('a restart within the time is not noticed', async (t) => {
    const redis = await startRedis(t)
    // Redis may take longer to start than a commit usually waits.
    const store = await openRedis(t, redis.url, { timeoutMs: 30_000 })
    const commits: Promise<unknown>[] = []
    for (const key of numbered(200)) {
      commits.push(store.commit([put(key)]))
      if (commits.length === 50) await redis.kill()
      if (commits.length % 10 === 0) await delay(5)
    }
    await redis.restart()
    await Promise.all(commits)
    t.equal((await entries(store, 'n/')).size, 200)
  })

  t.test('a Redis that hangs does not keep anybody waiting, and a late commit overtakes none', async (t) => {
    const redis = await startRedis(t)
    const store = await openRedis(t, redis.url, { timeoutMs: 2_000 })
    for (const round of [1, 2, 3]) {
      await store.commit([put('k/1', 'first')])
      redis.pause()
      const sent = store.commit([put('k/1', `late ${round}`)])
      await delay(50)
      const waiting = store.commit([put('k/2')])
      await Promise.all([
        t.rejects(sent, { message: /^not committed, it may still be applied: Redis did not answer/ }),
        t.rejects(waiting, { message: /^not committed, / }),
        t.rejects(store.get('k/1'), { message: /^Redis did not answer/ }),
      ])
      redis.resume()
      await eventually(() => store.commit([put('k/1', 'second')]))
      for (let look = 0; look < 5; look++) t.equal(await text(store, 'k/1'), 'second')
    }
  })

  t.test('a connection that went dead is replaced', async (t) => {
    const redis = await startRedis(t)
    const network = await startNetwork(t, redis.port)
    const store = await openRedis(t, network.url, { timeoutMs: 2_000 })
    const follower = await openRedis(t, network.url, { timeoutMs: 2_000 })
    const told = new Promise((resolve, reject) => follower.follow(resolve, reject))
    await delay(50)
    network.freeze()
    await t.rejects(store.commit([put('k/1', 'first')]), { message: /may still be applied/ })
    await eventually(() => store.commit([put('k/1', 'second')]))
    t.match(await told, [{ put: 'k/1' }], 'also that of a follower')
    t.equal(await text(store, 'k/1'), 'second')
  })

  t.test('a slow Redis delays, and what waits goes out together', async (t) => {
    const redis = await startRedis(t)
    const network = await startNetwork(t, redis.port, { delayMs: 50 })
    const store = await openRedis(t, network.url)
    await store.commit([put('k/1')])
    const client = redis.client()
    await client.config('RESETSTAT')
    await Promise.all(numbered(100).map((key) => store.commit([put(key)])))
    const [, calls] = /cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats')) ?? []
    t.ok(Number(calls) <= 3, `${calls} calls`)
  })

  t.test('a backlog is no fault: commits wait while Redis answers those before them', async (t) => {
    const redis = await startRedis(t)
    const network = await startNetwork(t, redis.port, { delayMs: 50 })
    const store = await openRedis(t, network.url, { timeoutMs: 1_000 })
    // Each of these commits fills a group, and takes a round trip of its own.
    const large = 'x'.repeat(300_000)
    const keys = numbered(20)
    await Promise.all(keys.map((key) => store.commit([put(key, large)])))
    for (const key of keys) t.equal((await text(store, key))?.length, large.length)
    await redis.pause()
    await t.rejects(
      store.commit([put('late')]),
      { message: /not committed/ },
      'without answers it does not wait',
    )
    await redis.resume()
  })

  t.test('lost connections neither lose nor repeat a commit', async (t) => {
    const redis = await startRedis(t)
    const [store, follower] = [await openRedis(t, redis.url), await openRedis(t, redis.url)]
    const told: string[] = []
    follower.follow((changes) => {
      for (const change of changes) if ('tell' in change) told.push(change.value.toString())
    }, t.fail)
    const client = redis.client()
    let isDone = false
    const killing = (async () => {
      while (!isDone) {
        await client.client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
        await delay(30)
      }
    })()
    const all = numbered(2_000)
    for (let index = 0; index < all.length; index += 20) {
      const count = index / 20
      await Promise.all([
        ...all.slice(index, index + 20).map((value) => store.commit([{ tell: 'n', value }])),
        // This commit fails if Redis lost the previous count, or applies this commit twice.
        store.commit([
          { ...put('k/count', `${count + 1}`), when: count === 0 ? 'absent' : { value: `${count}` } },
        ]),
      ])
    }
    isDone = true
    await killing
    await eventually(async () => {
      if (told.length < all.length) throw new Error(`told ${told.length}`)
    })
    t.strictSame(told, all)
  })

  t.test('out of memory: nothing half applied, deletions still work', async (t) => {
    const redis = await startRedis(t, ['maxmemory-policy noeviction'])
    const store = await openRedis(t, redis.url)
    await store.commit([put('k/old'), put('k/large', 'x'.repeat(2_000_000))])
    const client = redis.client()
    await client.config('SET', 'maxmemory', '2mb')
    const message = /^Redis is out of memory/
    await Promise.all([
      t.rejects(store.commit([{ del: 'k/old' }, put('k/new')]), { message }),
      t.rejects(store.commit([{ tell: 'n', value: 'x' }]), { message }),
      store.commit([{ del: 'k/large' }]),
      t.rejects(store.commit([put('k/new')]), { message }),
    ])
    t.strictSame([...(await entries(store, 'k/')).keys()], ['k/old'])
    await client.config('SET', 'maxmemory', '0')
    await store.commit([put('k/new')])
  })

  t.test('a Redis that has forgotten its scripts learns them again', async (t) => {
    const redis = await startRedis(t)
    const store = await openRedis(t, redis.url)
    await store.commit([put('k/1')])
    await redis.client().script('FLUSH')
    await store.commit([put('k/2')])
    await redis.client().script('FLUSH')
    t.equal((await entries(store, 'k/')).size, 2)
  })

  t.test('a Redis that is loading is waited for', async (t) => {
    const redis = await startRedis(t, ['key-load-delay 1000', 'loading-process-events-interval-bytes 1024'])
    const store = await openRedis(t, redis.url, { timeoutMs: 30_000 })
    await store.commit(numbered(500).map((key) => put(key)))
    await redis.client().bgrewriteaof()
    await redis.kill()
    const restarted = redis.restart()
    await store.commit([put('k/1')])
    await restarted
    t.equal((await entries(store, 'n/')).size, 500)
  })

  t.test('a server that became a replica is left for one that takes commits', async (t) => {
    const [redis, other] = [await startRedis(t), await startRedis(t)]
    const store = await openRedis(t, redis.url)
    await store.commit([put('k/1')])
    await redis.client().replicaof('127.0.0.1', other.port)
    const committed = store.commit([put('k/2')])
    await delay(200)
    await redis.client().replicaof('NO', 'ONE')
    await committed
    t.equal(await text(store, 'k/2'), 'x')
  })

  t.test(
    'a server that stays a replica is asked less and less, and is back when it takes a write',
    async (t) => {
      const [redis, other] = [await startRedis(t), await startRedis(t)]
      const states: { up: boolean; isMaster: boolean }[] = []
      let isMaster = true
      const store = await openRedis(t, redis.url, {
        timeoutMs: 1_000,
        onConnection: ({ up }) => states.push({ up, isMaster }),
      })
      const client = redis.client()
      const connections = async () =>
        Number(/total_connections_received:(\d+)/.exec(await client.info('stats'))?.[1])
      await store.commit([put('k/1')])
      await client.replicaof('127.0.0.1', other.port)
      isMaster = false
      const [before, beganAt] = [await connections(), performance.now()]
      while (performance.now() - beganAt < 3_000) {
        await t.rejects(store.commit([put('k/2')]), { message: /READONLY|not committed/ })
        await store.get('k/1').catch(() => undefined)
      }
      const seconds = (performance.now() - beganAt) / 1000
      const made = (await connections()) - before
      t.ok(made <= 5 + seconds, `${made} connections in ${seconds} s`)
      t.strictSame(states, [{ up: false, isMaster: false }])
      await client.replicaof('NO', 'ONE')
      isMaster = true
      await eventually(() => store.commit([put('k/2')]))
      t.strictSame(states.slice(1), [{ up: true, isMaster: true }])
    },
  )

  t.test('what Redis refuses is said at once, without values', async (t) => {
    const redis = await startRedis(t)
    const store = await openRedis(t, redis.url)
    await store.commit([put('k/0')])
    await redis.client().set(keysOf('hub:test').values, 'not a hash')
    const error = await store.commit([put('k/1', 'geheim')]).catch((error: unknown) => error)
    t.match(error, { message: /^Redis refused: WRONGTYPE/ })
    t.notMatch(inspect(error, { depth: 9, showHidden: true }), /geheim/)
  })

  t.test('closing ends in time, also without Redis', async (t) => {
    const redis = await startRedis(t)
    const store = await openRedis(t, redis.url, { timeoutMs: 2_000 })
    store.follow(failed, failed)
    await redis.kill()
    const awakeMs = countAwake()
    const committing = store.commit([put('k/1')])
    await Promise.all([store.close(), t.rejects(committing)])
    t.ok(awakeMs() < 5_000)
  })
})

/** A callback that must not be called. */
function failed(): never {
  throw new Error('called')
}

/** Starts to count milliseconds. While this process stands still, the count rises by 50 at most. */
function countAwake(): () => number {
  let count = 0
  const timer = setInterval(() => {
    count += 50
  }, 50).unref()
  return () => {
    clearInterval(timer)
    return count
  }
}

/** Calls `attempt` until it succeeds. Rejects with its error after `patienceMs`. */
async function eventually<T>(attempt: () => Promise<T>): Promise<T> {
  const end = performance.now() + patienceMs
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (performance.now() > end) throw error
      await delay(20)
    }
  }
}
