import { randomUUID } from 'node:crypto'
import { keepsStored } from '../../../store/commit.ts'
import { encodeGroup } from '../../../store/redis/changes.ts'
import { type Argument, commitScript, keysOf } from '../../../store/redis/script.ts'
import type { Change } from '../../../store/store.ts'
import { freePort } from '../../free-port.ts'
import { onRedis, type RedisServer, startRedis } from '../../redis-server.ts'
import { entries, numbered, openRedis, text } from '../open-redis.ts'
import { storeSuite } from '../suite.ts'

onRedis('Redis', async (t, redis) => {
  storeSuite(t, async (t) => {
    const space = { project: randomUUID() }
    let current = await openRedis(t, redis.url, space)
    return {
      store: current,
      async reopen() {
        await current.close()
        current = await openRedis(t, redis.url, space)
        return current
      },
    }
  })

  t.test('stores of other projects and stages are other stores', async (t) => {
    const spaces = [{ project: 'a' }, { project: 'b' }, { project: 'a', stage: 'prod' }]
    const stores = await Promise.all(spaces.map((space) => openRedis(t, redis.url, space)))
    for (const [index, store] of stores.entries()) await store.commit([{ put: 'k/1', value: String(index) }])
    for (const [index, store] of stores.entries()) t.equal(await text(store, 'k/1'), String(index))
  })

  t.test('all keys are in one slot of a cluster', async (t) => {
    const store = await openRedis(t, redis.url, { project: 'slots', logBytes: 1 })
    for (const key of numbered(20)) await store.commit([{ put: key, value: 'x' }])
    const keys = await redis.client().keys('{slots:test}:*')
    t.equal((await redis.client().keys('*slots*')).length, keys.length)
    t.equal(keys.length, 6)
  })

  t.test('long ranges come in pages', async (t) => {
    const store = await openRedis(t, redis.url, { project: 'pages' })
    const many = numbered(1_100, 'many/')
    await store.commit(many.map((key) => ({ put: key, value: key })))
    t.strictSame([...(await entries(store, 'many/')).keys()], many)
    const large = numbered(5, 'large/')
    for (const key of large) await store.commit([{ put: key, value: Buffer.alloc(700_000, key) }])
    t.strictSame([...(await entries(store, 'large/')).keys()], large)
  })

  t.test('commits that wait for one another share a call', async (t) => {
    const store = await openRedis(t, redis.url, { project: 'groups' })
    const client = redis.client()
    await client.config('RESETSTAT')
    await Promise.all(numbered(400).map((key) => store.commit([{ put: key, value: 'x' }])))
    const [, calls] = /cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats')) ?? []
    t.ok(Number(calls) <= 3, `${calls} calls`)
    t.equal((await entries(store, 'n/')).size, 400)
  })

  t.test('ordered changes of two nodes end as the rule says', async (t) => {
    const space = { project: 'race' }
    const nodes = await Promise.all([openRedis(t, redis.url, space), openRedis(t, redis.url, space)])
    const horizon = 2_000
    const times = Array.from({ length: 600 }, (_, index) => (index * 7919) % 1_000)
    const commits = times.map((time, index) => {
      const change: Change = { put: `k/${index % 3}`, value: String(time), order: { time, horizon } }
      return nodes[index % 2]?.commit([change])
    })
    await Promise.all(commits)
    for (const key of [0, 1, 2]) {
      const newest = Math.max(...times.filter((_, index) => index % 3 === key))
      for (const node of nodes) t.equal(await text(node, `k/${key}`), String(newest))
    }
    t.ok(keepsStored(999, { time: 998, horizon }))
  })

  t.test('a group sent twice is applied once, one that was overtaken not at all', async (t) => {
    const { commit, get, logLength } = scriptOn(redis)
    const id = await commit(7, [{ put: 'k/1', value: 'first' }])
    t.equal(await commit(7, [{ put: 'k/1', value: 'first' }]), id)
    t.equal(await logLength(), 1)
    await commit(9, [{ put: 'k/1', value: 'third' }])
    await t.rejects(commit(8, [{ put: 'k/1', value: 'second' }]), { message: /overtaken/ })
    t.equal(await get('k/1'), 'third')
    t.equal(await logLength(), 2)
  })

  t.test('a server that became a replica does not answer for what it applied before', async (t) => {
    const former = await startRedis(t)
    const { commit } = scriptOn(former)
    await commit(1, [{ put: 'k/1', value: 'x' }])
    await former.client().replicaof('127.0.0.1', await freePort())
    await t.rejects(commit(1, [{ put: 'k/1', value: 'x' }]), { message: /READONLY/ })
  })

  t.test('a repetition is told again which conditions failed, also where nothing was applied', async (t) => {
    const { commit, get, logLength } = scriptOn(redis, 'conditions')
    const put = (value: string): Change[] => [{ put: 'k/1', value, when: 'absent' }]
    const answer = await commit(1, put('first'), put('second'), [{ put: 'k/2', value: 'x' }], put('third'))
    t.match(answer, / 2,3$/)
    t.equal(await commit(1, put('first'), put('second'), [{ put: 'k/2', value: 'x' }], put('third')), answer)
    t.equal(await logLength(), 1)
    const refused = await commit(2, put('fourth'))
    t.equal(refused, String(answer).replace(/(.*?) .*/, '=$1 1'), 'without a place of its own in the log')
    await redis.client().hdel(keysOf('conditions').values, 'k/1')
    t.equal(await commit(2, put('fourth')), refused)
    t.equal(await get('k/1'), undefined)
    t.equal(await logLength(), 1)
  })

  t.test('a repetition is told the same first number, and takes no other', async (t) => {
    const { commit, get, logFields } = scriptOn(redis, 'numbers')
    const client = redis.client()
    const last = () => client.hget(keysOf('numbers').head, 'number')
    const entry: Change = { put: 'n/', value: 'x', numbered: { nth: 1, at: 'both' } }
    const plain = await commit(1, [{ put: 'k/1', value: 'x' }])
    t.match(plain, /^\S+ $/, 'none is told where none is taken')
    t.strictSame([await last(), (await logFields()).includes('base')], [null, false])
    const answer = await commit(2, [entry], [{ put: 'k/1', value: 'x' }], [entry])
    t.match(answer, /^\S+ {2}1$/)
    t.equal(await commit(2, [entry], [{ put: 'k/1', value: 'x' }], [entry]), answer)
    t.strictSame([await last(), (await logFields()).slice(-2)], ['4', ['base', '1']])
    t.equal(await get('n/0000000000000002'), '0000000000000002x')
    t.equal(await get('n/0000000000000004'), '0000000000000004x')
    t.match(await commit(3, [entry, { check: 'k/1', when: 'absent' }]), /^\S+ 1 5$/)
    await client.hset(keysOf('numbers').head, 'number', '4503599627370496')
    t.match(await commit(4, [entry]), / 4503599627370497$/)
    t.equal(await get('n/4503599627370498'), '4503599627370498x')
  })

  t.test('a group is fenced by a membership, its repetition is not', async (t) => {
    const { commit, fencedBy } = scriptOn(redis, 'fence')
    await commit(1, [{ put: 'node/a', value: 'first' }])
    const fenced = fencedBy('node/a', 'first')
    const answer = await fenced(2, [{ put: 'k/1', value: 'x' }])
    await commit(3, [{ del: 'node/a' }])
    await t.rejects(fenced(4, [{ put: 'k/1', value: 'y' }]), { message: /^FENCED/ })
    const last = await commit(4, [{ put: 'node/a', value: 'second' }])
    t.not(last, answer)
    t.equal(await fenced(4, [{ put: 'k/1', value: 'y' }]), last)
    await t.rejects(fenced(5, [{ put: 'k/1', value: 'y' }]), { message: /^FENCED/ })
  })

  t.test('the log is cut at the size it may have', async (t) => {
    const store = await openRedis(t, redis.url, { project: 'log', logBytes: 100_000 })
    for (const key of numbered(300)) await store.commit([{ put: key, value: Buffer.alloc(1_000) }])
    const length = await redis.client().xlen(keysOf('log:test').log)
    t.ok(length >= 75 && length <= 100, `${length} entries`)
  })
})

function scriptOn(redis: RedisServer, space = 'script') {
  const client = redis.client()
  const keys = keysOf(space)
  const names = [keys.values, keys.keys, keys.log, keys.head, keys.marks, keys.writer('me')]
  const send = (command: string, args: readonly Argument[]) => client.call(command, [...args])
  const fencedBy =
    (...fence: string[]) =>
    (number: number, ...commits: Change[][]) => {
      const { changes, conditions, taken } = encodeGroup(commits)
      return commitScript(send, names, ['me', number, changes, 1e9, conditions, taken, '0-0', ...fence])
    }
  return {
    commit: fencedBy(),
    fencedBy,
    get: async (key: string) => (await client.hgetBuffer(keys.values, key))?.subarray(8).toString(),
    logLength: () => client.xlen(keys.log),
    logFields: async () => (await client.xrevrange(keys.log, '+', '-', 'COUNT', 1))[0]?.[1] ?? [],
  }
}
