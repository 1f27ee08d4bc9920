import { setImmediate as nextTurn } from 'node:timers/promises'
import { keysOf } from '../../../store/redis/script.ts'
import { ConditionFailed, type SharedStore } from '../../../store/store.ts'
import { onRedis, startRedis } from '../../redis-server.ts'
import { entries, openRedis, text } from '../open-redis.ts'
import { startNetwork } from '../slow-network.ts'

onRedis('conditions on a store that nodes share', async (t, redis) => {
  t.test('of two nodes that want an absent key one gets it, and the other knows by then who', async (t) => {
    const space = { project: 'race' }
    const nodes = await Promise.all(
      ['a', 'b'].map(async (name) => {
        const store = await openRedis(t, redis.url, space)
        return { name, store, known: memoryOf(store) }
      }),
    )
    for (let round = 0; round < 200; round++) {
      const key = `k/${round}`
      const results = await Promise.all(
        nodes.map(async ({ name, store, known }) => {
          if (round % 3 === 0) await nextTurn()
          const outcome = await outcomeOf(store.commit([{ put: key, value: name, when: 'absent' }]))
          return { name, outcome, told: known.get(key) }
        }),
      )
      const [winner] = results.filter(({ outcome }) => outcome === 'done')
      const losers = results.filter(({ outcome }) => outcome === `failed ${key}`)
      t.equal(losers.length, 1)
      t.equal(losers[0]?.told, winner?.name)
    }
    for (const { store } of nodes) t.equal((await entries(store, 'k/')).size, 200)
  })

  t.test('what a failed commit would have said is not told', async (t) => {
    const space = { project: 'told' }
    const [store, other] = [await openRedis(t, redis.url, space), await openRedis(t, redis.url, space)]
    const told: string[] = []
    other.follow((changes) => {
      for (const change of changes) told.push('tell' in change ? `${change.value}` : 'state')
    }, t.fail)
    await Promise.all([
      store.commit([{ tell: 'n', value: 'first' }]),
      outcomeOf(
        store.commit([
          { tell: 'n', value: 'failed' },
          { check: 'k/1', when: 'present' },
        ]),
      ),
      store.commit([{ tell: 'n', value: 'last' }]),
    ])
    await other.catchUp()
    t.strictSame(told, ['first', 'last'])
  })

  t.test('of a group without an answer a repetition tells which conditions failed', async (t) => {
    const { store, network, killClients, isApplied } = await openBehind('repeated')
    network.deafen()
    const outcomes = commitThree(store)
    await isApplied()
    await killClients()
    t.strictSame(await outcomes, ['done', 'failed k/1', 'done'])
    t.equal(await text(store, 'k/1'), 'first')
  })

  t.test('or its place in the log, if that comes first', async (t) => {
    const { store, network, killClients, isApplied } = await openBehind('from the log')
    memoryOf(store)
    await store.catchUp()
    network.deafen()
    const outcomes = commitThree(store)
    await isApplied()
    await killClients('hub-follow')
    t.strictSame(await outcomes, ['done', 'failed k/1', 'done'])
  })

  t.test('deletions with conditions work when Redis is out of memory, applied or not', async (t) => {
    const full = await startRedis(t, ['maxmemory-policy noeviction'])
    const store = await openRedis(t, full.url)
    await store.commit([
      { put: 'k/large', value: 'x'.repeat(2_000_000) },
      { put: 'k/small', value: 'x' },
    ])
    await full.client().config('SET', 'maxmemory', '2mb')
    const outcomes = [
      outcomeOf(store.commit([{ del: 'k/small', when: 'absent' }])),
      outcomeOf(
        store.commit([
          { del: 'k/small', when: 'present' },
          { check: 'k/large', when: 'present' },
        ]),
      ),
      outcomeOf(store.commit([{ check: 'k/small', when: 'present' }])),
    ]
    t.strictSame(await Promise.all(outcomes), ['failed k/small', 'done', 'failed k/small'])
    t.equal(await outcomeOf(store.commit([{ del: 'k/small', when: 'present' }])), 'failed k/small')
    await t.rejects(store.commit([{ put: 'k/new', value: 'x', when: 'absent' }]), {
      message: /out of memory/,
    })
    t.equal(await outcomeOf(store.commit([{ del: 'k/large', when: 'present' }])), 'done')
  })

  async function openBehind(project: string) {
    const network = await startNetwork(t, redis.port)
    const store = await openRedis(t, network.url, { project, timeoutMs: 10_000 })
    const client = redis.client()
    const values = keysOf(`${project}:test`).values
    return {
      store,
      network,
      async isApplied(): Promise<void> {
        while ((await client.hget(values, 'k/2')) === null) await nextTurn()
      },
      async killClients(name = 'hub-store'): Promise<void> {
        const list = String(await client.client('LIST'))
        for (const [, id = ''] of list.matchAll(new RegExp(`^id=(\\d+) .*name=${name} `, 'gm'))) {
          await client.client('KILL', 'ID', id)
        }
      },
    }
  }
})

/** Makes three commits in one group. The condition of the second commit fails. */
function commitThree(store: SharedStore): Promise<string[]> {
  return Promise.all([
    outcomeOf(store.commit([{ put: 'k/1', value: 'first', when: 'absent' }])),
    outcomeOf(store.commit([{ put: 'k/1', value: 'second', when: 'absent' }])),
    outcomeOf(store.commit([{ put: 'k/2', value: 'third', when: 'absent' }])),
  ])
}

/** Follows the store. The map has what a node would have in memory. */
function memoryOf(store: SharedStore): Map<string, string> {
  const known = new Map<string, string>()
  store.follow(
    (changes) => {
      for (const change of changes) if ('put' in change) known.set(change.put, change.value.toString())
    },
    (gap) => {
      throw gap
    },
  )
  return known
}

async function outcomeOf(commit: Promise<unknown>): Promise<string> {
  return commit.then(
    () => 'done',
    (error: unknown) => (error instanceof ConditionFailed ? `failed ${error.key}` : String(error)),
  )
}
