import { setImmediate as nextTurn } from 'node:timers/promises'
import { keysOf } from '../../../store/redis/script.ts'
import type { Change, SharedStore } from '../../../store/store.ts'
import { onRedis, startRedis } from '../../redis-server.ts'
import { entries, openRedis, text } from '../open-redis.ts'
import { startNetwork } from '../slow-network.ts'

onRedis('numbers on a store that nodes share', async (t, redis) => {
  t.test('concurrent commits of two nodes take numbers in the order that is told', async (t) => {
    const open = async () => {
      const store = await openRedis(t, redis.url, { project: 'concurrent' })
      return { store, told: toldTo(store) }
    }
    const [a, b, follower] = [await open(), await open(), await open()]
    const rounds = 300
    const commitAll = async (store: SharedStore, name: string) => {
      const taken: number[] = []
      const commits = Array.from({ length: rounds }, async (_, round) => {
        for (let turn = 0; turn < round; turn += 9) await nextTurn()
        const isRefused = round % 5 === 0
        const refusal: Change[] = isRefused ? [{ check: 'n/none', when: 'present' }] : []
        const commit = store.commit([...entriesOf(`${name} ${round}`), ...refusal])
        if (isRefused) {
          await t.rejects(commit, { name: 'ConditionFailed' })
          return
        }
        const first = await commit
        taken.push(first)
        t.equal(await text(store, `n/${digitsOf(first)}`), `${name} ${round}`)
      })
      await Promise.all(commits)
      return taken
    }
    const taken = (await Promise.all([commitAll(a.store, 'a'), commitAll(b.store, 'b')])).flat()
    await Promise.all([a, b, follower].map(({ store }) => store.catchUp()))
    const stored = [...(await entries(follower.store, 'n/'))]
    t.equal(stored.length, 2 * taken.length)
    t.equal(new Set(taken).size, 2 * 0.8 * rounds)
    const told = follower.told.filter(([key]) => key !== 'latest')
    t.strictSame(told, stored, 'others are told real keys and values')
    t.equal(new Map(follower.told).get('latest'), await text(follower.store, 'latest'))
    const ofB = ([, value]: [string, string]) => value.replace(/^\d{16}/, '').startsWith('b')
    t.strictSame(a.told, follower.told.filter(ofB))
    t.equal(await follower.store.lastNumber(), await a.store.lastNumber())
  })

  for (const [how, connection] of [
    ['repetition', 'hub-store'],
    ['place in the log', 'hub-follow'],
  ] as const) {
    t.test(`a commit whose answer was lost learns its only number from its ${how}`, async (t) => {
      const space = { project: connection }
      const network = await startNetwork(t, redis.port)
      const store = await openRedis(t, network.url, { ...space, timeoutMs: 3_000 })
      const other = await openRedis(t, redis.url, space)
      t.equal(await other.commit(entriesOf('before')), 1)
      if (connection === 'hub-follow') {
        toldTo(store)
        await store.catchUp()
      }
      network.deafen()
      const commits = Promise.allSettled([
        store.commit(entriesOf('first')),
        store.commit([...entriesOf('failed'), { check: 'n/none', when: 'present' }]),
        store.commit([{ put: 'k/1', value: 'x' }]),
        store.commit(entriesOf('last')),
      ])
      const client = redis.client()
      while ((await client.hget(keysOf(`${connection}:test`).values, 'k/1')) === null) await nextTurn()
      const list = String(await client.client('LIST'))
      for (const [, id = ''] of list.matchAll(new RegExp(`^id=(\\d+) .*name=${connection} `, 'gm'))) {
        await client.client('KILL', 'ID', id)
      }
      const failed = { reason: { name: 'ConditionFailed' } }
      t.match(await commits, [{ value: 3 }, failed, { value: 0 }, { value: 7 }])
      t.equal(await other.commit(entriesOf('after')), 9)
      const found = [...(await entries(other, 'n/')).values()].filter((value) => !value.endsWith('again'))
      t.strictSame(found, ['before', 'first', 'last', 'after'])
    })
  }

  t.test('what was given up and applied all the same is told with its numbers', async (t) => {
    const own = await startRedis(t)
    const store = await openRedis(t, own.url, { timeoutMs: 2_000 })
    const told = toldTo(store)
    await store.commit(entriesOf('known'))
    own.pause()
    await t.rejects(store.commit(entriesOf('given up')), { message: /may still be applied/ })
    own.resume()
    while (told.length < 3) await nextTurn()
    t.strictSame(told, [
      [`n/${digitsOf(3)}`, 'given up'],
      [`n/${digitsOf(4)}`, 'given up, again'],
      ['latest', `${digitsOf(4)}given up`],
    ])
    t.equal(await store.lastNumber(), 4)
  })

  t.test('a node that knows of numbers which Redis has lost changes nothing there', async (t) => {
    const space = { project: 'lost' }
    const [store, other] = [await openRedis(t, redis.url, space), await openRedis(t, redis.url, space)]
    const gap = new Promise<Error>((resolve) => store.follow(() => undefined, resolve))
    await other.commit(entriesOf('first'))
    await store.catchUp()
    // The state after a failover to a replica without the only entry of the log.
    const { log, head } = keysOf('lost:test')
    await redis.client().multi().del(log).hdel(head, 'id').exec()
    const refusal = { message: /must start again/ }
    await t.rejects(store.commit([{ put: 'place', value: 'of a lost past' }]), refusal)
    await t.rejects(store.commit([{ put: 'place', value: 'of a lost past' }]), refusal, 'nor later')
    // The reader of the log may have noticed the loss first.
    t.match(await gap, { message: /must start again|no longer has the entry/ }, 'it starts again')
    t.equal(await text(other, 'place'), undefined)
    const third = await openRedis(t, redis.url, space)
    t.equal(await third.commit(entriesOf('next')), 3, 'who knows nothing of it goes on')
  })
})

/** The changes of a commit that takes two numbers. */
function entriesOf(value: string): Change[] {
  return [
    { put: 'n/', value, numbered: { nth: 0, at: 'key' } },
    { put: 'n/', value: Buffer.from(`${value}, again`), numbered: { nth: 1, at: 'key' } },
    { put: 'latest', value, numbered: { nth: 1, at: 'value' } },
  ]
}

function toldTo(store: SharedStore): [key: string, value: string][] {
  const told: [string, string][] = []
  store.follow(
    (changes) => {
      for (const change of changes) if ('put' in change) told.push([change.put, change.value.toString()])
    },
    (gap) => {
      throw gap
    },
  )
  return told
}

function digitsOf(number: number): string {
  return String(number).padStart(16, '0')
}
