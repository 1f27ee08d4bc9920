import fc from 'fast-check'
import type { Test } from 'tap'
import { keepsStored } from '../../store/commit.ts'
import type { Order, Store } from '../../store/store.ts'
import type { Opened } from './suite.ts'

type OrderedChange = { put: string; value: string; order?: Order } | { del: string; order?: Order }

const key = 'retained/x'
/**
 * The current time, and the horizon 10 minutes ahead. A value keeps out older values only if its time is not beyond the
 * horizon.
 */
const now = 1_800_000_000_000
const horizon = now + 600_000

/** Tests of `Order`: the value with the latest event time wins. */
export function orderSuite(t: Test, open: (t: Test) => Promise<Opened>): void {
  const rows: [name: string, changes: OrderedChange[], expected: string | undefined][] = [
    ['the first stays', [at(now, 'first')], 'first'],
    ['a newer one replaces', [at(now, 'old'), at(now + 1, 'new')], 'new'],
    ['an older one stays out', [at(now, 'new'), at(now - 1, 'old')], 'new'],
    ['of equal times the later arrival wins', [at(now, 'first'), at(now, 'second')], 'second'],
    ['up to the horizon it defends itself', [at(horizon, 'ahead'), at(now, 'present')], 'ahead'],
    ['beyond the horizon it gives way', [at(horizon + 1, 'far'), at(now, 'present')], 'present'],
    [
      'also to one that is far ahead itself',
      [at(horizon + 2, 'far'), at(horizon + 1, 'less far')],
      'less far',
    ],
    ['the horizon is that of the arrival', [at(now, 'stored'), at(now - 2, 'late', now - 1)], 'late'],
    ['times before 1970 are times', [at(-5, 'old'), at(-10, 'older')], 'old'],
    ['fractions of a millisecond count', [at(now + 0.5, 'new'), at(now, 'old')], 'new'],
    ['a deletion leaves a newer one alone', [at(now, 'new'), delAt(now - 1)], 'new'],
    ['a deletion takes one of the same time', [at(now, 'x'), delAt(now)], undefined],
    ['a deletion takes an older one', [at(now, 'x'), delAt(now + 1)], undefined],
    ['a deletion takes one beyond the horizon', [at(horizon + 1, 'far'), delAt(now)], undefined],
    ['a deletion leaves nothing behind', [at(now, 'x'), delAt(now + 1), at(now - 1, 'old')], 'old'],
    ['without an order nothing is kept out', [at(now, 'ordered'), { put: key, value: 'plain' }], 'plain'],
    ['what has no order gives way', [{ put: key, value: 'plain' }, at(now - 1, 'ordered')], 'ordered'],
    ['and forgets the order there was', [at(now, 'a'), { put: key, value: 'b' }, at(now - 1, 'c')], 'c'],
    ['a plain deletion takes all', [at(now, 'x'), { del: key }], undefined],
  ]

  t.test('last write wins by event time', async (t) => {
    for (const [name, changes, expected] of rows) {
      t.test(name, async (t) => {
        const { store } = await open(t)
        for (const change of changes) await store.commit([change])
        t.equal(await read(store), expected, 'in commits one after the other')
        await store.commit([{ del: key }])
        await store.commit(changes)
        t.equal(await read(store), expected, 'in one commit')
        await store.commit([{ del: key }])
        await Promise.all(changes.map((change) => store.commit([change])))
        t.equal(await read(store), expected, 'in concurrent commits')
      })
    }
  })

  t.test('the event time survives reopening', async (t) => {
    const { store, reopen } = await open(t)
    await store.commit([at(now, 'new')])
    const again = await reopen()
    await again.commit([at(now - 1, 'old')])
    t.equal(await read(again), 'new')
  })

  t.test('an older put that stays out does not hinder the rest of its commit', async (t) => {
    const { store } = await open(t)
    await store.commit([at(now, 'new')])
    await store.commit([{ put: 'a/1', value: 'x' }, at(now - 1, 'old'), { put: 'a/2', value: 'y' }])
    t.equal(await read(store), 'new')
    t.equal((await store.get('a/1'))?.toString(), 'x')
    t.equal((await store.get('a/2'))?.toString(), 'y')
  })

  t.test('orders of different keys have nothing to do with each other', async (t) => {
    const { store } = await open(t)
    await store.commit([at(now, 'x'), { put: 'retained/y', value: 'y', order: { time: now - 1, horizon } }])
    t.equal((await store.get('retained/y'))?.toString(), 'y')
  })

  t.test('any sequence in any grouping ends as the rule says', async (t) => {
    const { store } = await open(t)
    const time = fc.integer({ min: now - 3, max: now + 3 })
    const order = fc.record({ time, horizon: fc.integer({ min: now - 2, max: now + 4 }) })
    const change = fc.record({ order: fc.option(order), isDeletion: fc.boolean(), group: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 12 }), async (made) => {
        await store.commit([{ del: key }])
        const changes = made.map(({ order, isDeletion }, index): OrderedChange => {
          const ordered = order === null ? {} : { order }
          return isDeletion ? { del: key, ...ordered } : { put: key, value: String(index), ...ordered }
        })
        const commits: OrderedChange[][] = []
        for (const [index, one] of changes.entries()) {
          const last = commits.at(-1)
          if (last && made[index]?.group) last.push(one)
          else commits.push([one])
        }
        await Promise.all(commits.map((commit) => store.commit(commit)))
        t.equal(await read(store), outcomeOf(changes))
      }),
      { numRuns: 100 },
    )
  })
}

/** The value that one key has after these changes, by the rule of `Order`. */
function outcomeOf(changes: readonly OrderedChange[]): string | undefined {
  let stored: { value: string; time: number | undefined } | undefined
  for (const change of changes) {
    if (change.order && stored?.time !== undefined && keepsStored(stored.time, change.order)) continue
    stored = 'put' in change ? { value: change.value, time: change.order?.time } : undefined
  }
  return stored?.value
}

function at(time: number, value: string, until = horizon): OrderedChange {
  return { put: key, value, order: orderOf(time, until) }
}

function delAt(time: number): OrderedChange {
  return { del: key, order: orderOf(time, horizon) }
}

function orderOf(time: number, horizon: number): Order {
  return { time, horizon }
}

async function read(store: Store): Promise<string | undefined> {
  return (await store.get(key))?.toString()
}
