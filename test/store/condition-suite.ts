import fc from 'fast-check'
import type { Test } from 'tap'
import type { Change, Condition, Store } from '../../store/store.ts'
import type { Opened } from './suite.ts'

/** The part of the store suite about conditions of commits (`Condition`). */
export function conditionSuite(t: Test, open: (t: Test) => Promise<Opened>): void {
  const entry = { put: 'c/1', value: 'stored', order: { time: 5, horizon: Infinity } }
  const rows: [condition: Condition, stored: Change | undefined, holds: boolean][] = [
    ['absent', undefined, true],
    ['absent', entry, false],
    ['absent', { put: 'c/1', value: '' }, false],
    ['present', undefined, false],
    ['present', entry, true],
    ['present', { put: 'c/1', value: '' }, true],
    [{ value: 'stored' }, entry, true],
    [{ value: Buffer.from('stored') }, entry, true],
    [{ value: 'stored' }, { put: 'c/1', value: 'stored' }, true],
    [{ value: 'store' }, entry, false],
    [{ value: '' }, entry, false],
    [{ value: '' }, { put: 'c/1', value: '' }, true],
    [{ value: '' }, undefined, false],
    [{ value: Buffer.from([0, 255]) }, { put: 'c/1', value: Buffer.from([0, 255]) }, true],
    [{ time: 5 }, entry, true],
    [{ time: 4 }, entry, false],
    [{ time: 6 }, entry, false],
    [{ time: 5 }, { put: 'c/1', value: 'no time' }, false],
    [{ time: 5 }, undefined, false],
    [{ notNewerThan: 5 }, entry, true],
    [{ notNewerThan: 6 }, entry, true],
    [{ notNewerThan: 4.5 }, entry, false],
    [{ notNewerThan: 4 }, { put: 'c/1', value: 'no time' }, true],
    [{ notNewerThan: 4 }, undefined, true],
  ]

  t.test('a condition that only other nodes can break is asked where there may be others', async (t) => {
    const { store } = await open(t)
    for (const change of [{ put: 'c/1', value: 'new' }, { del: 'c/1' }]) {
      const failedKey = await failedKeyOf(store.commit([{ ...change, when: 'present', onlyOthers: true }]))
      t.equal(failedKey, store.isShared ? 'c/1' : undefined)
      await reset(store, undefined)
    }
  })

  t.test(
    'a commit applies where its conditions hold, else it changes nothing and says which key',
    async (t) => {
      const { store } = await open(t)
      for (const [when, stored, isExpected] of rows) {
        const name = `${JSON.stringify(when)} of ${JSON.stringify(stored)}`
        const changes: Change[] = [
          { put: 'c/1', value: 'new', when },
          { put: 'c/2', value: 'new' },
          { del: 'c/3' },
        ]
        const onlyChecked: Change[] = [{ check: 'c/1', when }, ...changes.slice(1)]
        const deletion: Change[] = [{ del: 'c/1', when }, ...changes.slice(1)]
        for (const commit of [changes, onlyChecked, deletion]) {
          await reset(store, stored)
          const before = await contentOf(store)
          const failedKey = await failedKeyOf(store.commit(commit))
          t.equal(failedKey, isExpected ? undefined : 'c/1', name)
          if (!isExpected) t.strictSame(await contentOf(store), before, name)
          else t.strictSame((await contentOf(store)).get('c/2'), 'new', name)
        }
        await reset(store, stored)
        t.equal(
          await failedKeyOf(store.commit([{ check: 'c/1', when }])),
          isExpected ? undefined : 'c/1',
          name,
        )
      }
    },
  )

  t.test('a key that is checked stays as it is, also if there is none', async (t) => {
    const { store } = await open(t)
    await store.commit([
      { check: 'c/1', when: 'absent' },
      { put: 'c/2', value: 'x' },
    ])
    await store.commit([{ check: 'c/2', when: 'present' }])
    t.strictSame([...(await contentOf(store))], [['c/2', 'x']])
  })

  t.test('each commit is judged by what the one before left, however they are grouped', async (t) => {
    const { store } = await open(t)
    const claims = Array.from({ length: 20 }, (_, index) =>
      failedKeyOf(store.commit([{ put: 'c/1', value: String(index), when: 'absent' }])),
    )
    t.strictSame(await Promise.all(claims), [undefined, ...Array(19).fill('c/1')])
    t.strictSame([...(await contentOf(store))], [['c/1', '0']])
    const steps = Array.from({ length: 20 }, (_, index) =>
      store.commit([{ put: 'c/1', value: String(index + 1), when: { value: String(index) } }]),
    )
    await Promise.all(steps)
    t.strictSame([...(await contentOf(store))], [['c/1', '20']])
  })

  t.test('conditions ask for the entries before their commit, whatever it changes itself', async (t) => {
    const { store } = await open(t)
    await store.commit([
      { put: 'c/1', value: 'x', when: 'absent' },
      { put: 'c/1', value: 'y', when: 'absent' },
      { check: 'c/1', when: 'absent' },
    ])
    t.strictSame([...(await contentOf(store))], [['c/1', 'y']])
  })

  t.test('a failed commit takes no other with it, and all are told in the order of the calls', async (t) => {
    const { store } = await open(t)
    const outcomes: string[] = []
    const commits: Change[][] = [
      [{ put: 'c/1', value: 'x' }],
      [
        { put: 'c/2', value: 'x' },
        { tell: 'n', value: 'x' },
        { check: 'c/1', when: 'absent' },
      ],
      [{ check: 'c/2', when: 'absent' }],
      [{ check: 'c/3', when: 'present' }],
      [{ put: 'c/4', value: 'x' }],
    ]
    await Promise.all(
      commits.map((changes, index) =>
        failedKeyOf(store.commit(changes)).then((key) => outcomes.push(`${index} ${key}`)),
      ),
    )
    t.strictSame(outcomes, ['0 undefined', '1 c/1', '2 undefined', '3 c/3', '4 undefined'])
    t.strictSame([...(await contentOf(store)).keys()], ['c/1', 'c/4'])
  })

  t.test('of several conditions the first that fails is named', async (t) => {
    const { store } = await open(t)
    const commit = store.commit([
      { check: 'c/1', when: 'absent' },
      { check: 'c/ä', when: 'present' },
      { check: 'c/3', when: 'present' },
    ])
    await t.rejects(commit, { name: 'ConditionFailed', key: 'c/ä' })
  })

  t.test('a condition is no order: an older change stays out although its condition holds', async (t) => {
    const { store } = await open(t)
    await store.commit([entry])
    await store.commit([
      { put: 'c/1', value: 'old', order: { time: 4, horizon: 10 }, when: 'present' },
      { put: 'c/2', value: 'x' },
    ])
    t.strictSame(
      [...(await contentOf(store))],
      [
        ['c/1', 'stored'],
        ['c/2', 'x'],
      ],
    )
  })

  t.test('what was committed with a condition survives reopening', async (t) => {
    const { store, reopen } = await open(t)
    await store.commit([{ put: 'c/1', value: 'x', when: 'absent' }])
    t.equal(await failedKeyOf(store.commit([{ put: 'c/1', value: 'y', when: 'absent' }])), 'c/1')
    const again = await reopen()
    t.equal(await failedKeyOf(again.commit([{ put: 'c/1', value: 'z', when: 'absent' }])), 'c/1')
    t.strictSame([...(await contentOf(again))], [['c/1', 'x']])
  })

  t.test('any commits end as one after the other would', async (t) => {
    const { store } = await open(t)
    await fc.assert(
      fc.asyncProperty(fc.array(commitOf, { minLength: 1, maxLength: 15 }), async (commits) => {
        await store.commit(keys.map((key) => ({ del: key })))
        const model = createModel()
        const expected = commits.map((changes) => model.commit(changes))
        const outcomes = await Promise.all(commits.map((changes) => failedKeyOf(store.commit(changes))))
        t.strictSame(outcomes, expected)
        t.strictSame(await contentOf(store), model.content())
      }),
      { numRuns: 150 },
    )
  })
}

const keys = ['c/1', 'c/2', 'c/3']
const key = fc.constantFrom(...keys)
const value = fc.constantFrom('', 'a', 'b')
const time = fc.integer({ min: 1, max: 3 })
const condition: fc.Arbitrary<Condition> = fc.oneof(
  fc.constantFrom('absent' as const, 'present' as const),
  fc.record({ value }),
  fc.record({ time }),
  fc.record({ notNewerThan: time }),
)
const optional = {
  order: fc.option(fc.record({ time, horizon: fc.constantFrom(2, 9) }), { nil: undefined }),
  when: fc.option(condition, { nil: undefined, freq: 2 }),
}
const change: fc.Arbitrary<Change> = fc
  .oneof(
    fc.record({ put: key, value, ...optional }),
    fc.record({ del: key, ...optional }),
    fc.record({ check: key, when: condition }),
    fc.record({ tell: fc.constant('word'), value }),
  )
  .map((made) => Object.fromEntries(Object.entries(made).filter(([, part]) => part !== undefined)) as Change)
const commitOf = fc.array(change, { minLength: 1, maxLength: 4 })

/** The contract of `Store` in memory, for commits made one after the other. */
function createModel() {
  const stored = new Map<string, { value: string; time: number | undefined }>()

  return {
    /** Applies a commit, or returns the key of a condition that fails. */
    commit(changes: readonly Change[]): string | undefined {
      for (const change of changes) {
        if ('tell' in change || change.when === undefined) continue
        const key = 'put' in change ? change.put : 'del' in change ? change.del : change.check
        if (!isTrue(change.when, stored.get(key))) return key
      }
      for (const change of changes) {
        if ('tell' in change || 'check' in change) continue
        const key = 'put' in change ? change.put : change.del
        const known = stored.get(key)?.time
        const { order } = change
        if (order && known !== undefined && known > order.time && known <= order.horizon) continue
        if ('put' in change) stored.set(key, { value: String(change.value), time: order?.time })
        else stored.delete(key)
      }
      return undefined
    },
    content: () => new Map([...stored].sort().map(([key, { value }]) => [key, value])),
  }
}

function isTrue(
  condition: Condition,
  stored: { value: string; time: number | undefined } | undefined,
): boolean {
  if (condition === 'absent') return !stored
  if (condition === 'present') return !!stored
  if ('value' in condition) return stored !== undefined && stored.value === String(condition.value)
  if ('time' in condition) return stored !== undefined && stored.time === condition.time
  return !(stored?.time !== undefined && stored.time > condition.notNewerThan)
}

async function reset(store: Store, first: Change | undefined): Promise<void> {
  await store.commit([...keys.map((key) => ({ del: key })), { put: 'c/3', value: 'x' }])
  if (first) await store.commit([first])
}

/** The key of the condition that failed. Undefined: the store applied the commit. */
async function failedKeyOf(commit: Promise<unknown>): Promise<string | undefined> {
  try {
    await commit
    return undefined
  } catch (error) {
    if (error instanceof Error && 'key' in error && error.name === 'ConditionFailed') return String(error.key)
    throw error
  }
}

async function contentOf(store: Store): Promise<Map<string, string>> {
  const content = new Map<string, string>()
  for await (const [key, value] of store.range('c/')) content.set(key, value.toString())
  return content
}
