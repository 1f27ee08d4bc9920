import type { Test } from 'tap'
import type { Change, Numbered, StateChange, Store } from '../../store/store.ts'
import type { Opened } from './suite.ts'

/** Tests of the numbers that a store gives to changes (`Numbered`). */
export function numberSuite(t: Test, open: (t: Test) => Promise<Opened>): void {
  t.test('numbers rise from 1 in the order of the commits', async (t) => {
    const { store } = await open(t)
    t.equal(await store.lastNumber(), 0)
    t.equal(await store.commit([{ put: 'a/1', value: 'x' }]), 0, 'without a number')
    t.equal(await store.commit([]), 0)
    t.equal(await store.commit([entry('first')]), 1)
    t.equal(await store.commit([entry('second')]), 2)
    t.equal(await store.lastNumber(), 2)
    t.strictSame(await entries(store, 'n/'), ['n/0000000000000001=first', 'n/0000000000000002=second'])
  })

  t.test('a number stands behind the key, before the value, or both', async (t) => {
    const { store } = await open(t)
    const both = numbered('n/both ', 'both', 0, Buffer.from([0xff, 0]))
    await store.commit([numbered('n/key ', 'key'), numbered('n/value', 'value'), both])
    await store.commit([numbered('n/value of bytes', 'value', 0, Buffer.from('y'))])
    const digits = '0000000000000001'
    t.equal((await store.get(`n/key ${digits}`))?.toString(), 'x')
    t.equal((await store.get('n/value'))?.toString(), `${digits}x`)
    t.strictSame(await store.get(`n/both ${digits}`), Buffer.from([...Buffer.from(digits), 0xff, 0]))
    t.equal((await store.get('n/value of bytes'))?.toString(), '0000000000000002y')
    t.equal((await entries(store, 'n/')).length, 4)
  })

  t.test('a commit takes as many numbers as its changes count', async (t) => {
    const { store } = await open(t)
    const changes = [entry('third', 2), { put: 'a/1', value: 'x' }, entry('first'), entry('second', 1)]
    t.equal(await store.commit([...changes, numbered('value', 'value', 2), { tell: 'n', value: '' }]), 1)
    t.equal(await store.commit([entry('sixth', 2)]), 4, 'also where some stay unused')
    t.equal(await store.lastNumber(), 6)
    t.strictSame(await entries(store, 'n/'), [
      'n/0000000000000001=first',
      'n/0000000000000002=second',
      'n/0000000000000003=third',
      'n/0000000000000006=sixth',
    ])
    t.equal((await store.get('value'))?.toString(), '0000000000000003x')
  })

  t.test('concurrent commits take numbers in the order of the calls', async (t) => {
    const { store } = await open(t)
    const sizes = Array.from({ length: 700 }, (_, index) => (index * 7) % 4)
    const firsts = await Promise.all(
      sizes.map((size, index) => {
        const entries = Array.from({ length: size }, (_, nth) => entry(`${index}/${nth}`, nth))
        return store.commit([{ put: 'a/1', value: 'x' }, ...entries])
      }),
    )
    let last = 0
    const expected = sizes.flatMap((size, index) => {
      const first = last + 1
      last += size
      t.equal(firsts[index], size === 0 ? 0 : first)
      return Array.from({ length: size }, (_, nth) => `n/${digitsOf(first + nth)}=${index}/${nth}`)
    })
    t.strictSame(await entries(store, 'n/'), expected)
    t.equal(await store.lastNumber(), last)
  })

  t.test('nobody sees a number of a commit whose condition failed', async (t) => {
    const { store } = await open(t)
    const failing = () => store.commit([entry('failed'), { check: 'a/1', when: 'present' }])
    const [first, failed, second, third] = await Promise.allSettled([
      store.commit([entry('first')]),
      failing(),
      store.commit([entry('second'), entry('third', 1), { check: 'a/1', when: 'absent' }]),
      store.commit([entry('fourth')]),
    ])
    t.match(failed, { reason: { name: 'ConditionFailed' } })
    await t.rejects(failing(), { name: 'ConditionFailed' })
    const last = await store.commit([entry('last')])
    const numbers = [first, second, third].map((outcome) => 'value' in outcome && Number(outcome.value))
    const [one = 0, two = 0, four = 0] = numbers.map(Number)
    t.ok(one < two && two + 1 < four && four < last, `${numbers} ${last}`)
    t.strictSame(await entries(store, 'n/'), [
      ...[`n/${digitsOf(one)}=first`, `n/${digitsOf(two)}=second`, `n/${digitsOf(two + 1)}=third`],
      ...[`n/${digitsOf(four)}=fourth`, `n/${digitsOf(last)}=last`],
    ])
  })

  t.test('numbers are never lower after reopening, also when their entries are gone', async (t) => {
    const { store, reopen } = await open(t)
    await store.commit([entry('first'), entry('second', 1)])
    let again = await reopen()
    t.equal(await again.lastNumber(), 2)
    t.equal(await again.commit([entry('third')]), 3)
    await again.commit([1, 2, 3].map((number) => ({ del: `n/${digitsOf(number)}` })))
    again = await reopen()
    t.strictSame(await entries(again, 'n/'), [])
    t.equal(await again.lastNumber(), 3)
    t.equal(await again.commit([entry('fourth')]), 4)
  })

  t.test('a put whose value is numbered has an order like any other', async (t) => {
    const { store } = await open(t)
    const at = (time: number, value: string): Change => ({
      ...numbered('k/1', 'value', 0, value),
      order: { time, horizon: 100 },
    })
    t.equal(await store.commit([at(5, 'new')]), 1)
    t.equal(await store.commit([at(4, 'old')]), 2, 'it takes a number also where it stays out')
    t.strictSame(await entries(store, 'k/'), ['k/1=0000000000000001new'])
    const group = [at(6, 'newer'), at(5, 'old'), at(6, 'newest')].map((change) => store.commit([change]))
    t.strictSame(await Promise.all(group), [3, 4, 5])
    t.strictSame(await entries(store, 'k/'), ['k/1=0000000000000005newest'])
    t.equal(await store.commit([{ put: 'a/1', value: 'x' }]), 0)
    t.equal(await store.commit([at(1, 'old')]), 6)
    t.equal(await store.lastNumber(), 6)
  })

  t.test('and conditions, which see the number in the value', async (t) => {
    const { store } = await open(t)
    const when = (condition: StateChange['when'], value: string): Change => ({
      ...numbered('k/1', 'value', 0, value),
      ...(condition && { when: condition }),
    })
    const stored = (number: number, value: string) => ({ value: digitsOf(number) + value })
    const outcomes = await Promise.allSettled([
      store.commit([when('absent', 'first')]),
      store.commit([when('absent', 'failed')]),
      store.commit([when(stored(0, 'first'), 'failed')]),
      store.commit([when(stored(1, 'first'), 'second')]),
    ])
    t.strictSame(
      outcomes.map(({ status }) => status === 'fulfilled'),
      [true, false, false, true],
    )
    const last = await store.lastNumber()
    t.strictSame(await entries(store, 'k/'), [`k/1=${digitsOf(last)}second`])
    await t.rejects(store.commit([when(stored(last, 'first'), 'failed')]), { name: 'ConditionFailed' })
    await store.commit([when(stored(last, 'second'), 'third')])
  })

  t.test('a range may begin at a place within its prefix', async (t) => {
    const { store } = await open(t)
    await store.commit(['a/1', 'a/2', 'a/2/1', 'a/3', 'a0', 'b/2'].map((put) => ({ put, value: 'x' })))
    t.strictSame(await entries(store, 'a/', '2'), ['a/2=x', 'a/2/1=x', 'a/3=x'])
    t.strictSame(await entries(store, 'a/', '20'), ['a/3=x'])
    t.strictSame(await entries(store, 'a/', ''), ['a/1=x', 'a/2=x', 'a/2/1=x', 'a/3=x'])
    t.strictSame(await entries(store, 'a/', '4'), [])
    t.strictSame(await entries(store, 'none/', '4'), [])
  })
}

function entry(value: string, nth = 0): Change {
  return numbered('n/', 'key', nth, value)
}

function numbered(put: string, at: Numbered['at'], nth = 0, value: string | Buffer = 'x') {
  return { put, value, numbered: { nth, at } }
}

function digitsOf(number: number): string {
  return String(number).padStart(16, '0')
}

async function entries(store: Store, prefix: string, from?: string): Promise<string[]> {
  const found: string[] = []
  for await (const [key, value] of store.range(prefix, { from })) found.push(`${key}=${value}`)
  return found
}
