import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import type { Bounds, Change, Store } from '../../store/store.ts'
import { conditionSuite } from './condition-suite.ts'
import { numberSuite } from './number-suite.ts'
import { orderSuite } from './order-suite.ts'

/** An empty store, closed at the end of the test. `reopen` closes and reopens the store. */
export interface Opened {
  store: Store
  reopen(): Promise<Store>
}

/** The tests that every driver of the store must pass. */
export function storeSuite(t: Test, open: (t: Test) => Promise<Opened>): void {
  t.test('get, put and del', async (t) => {
    const { store } = await open(t)
    t.equal(await store.get('a/1'), undefined)
    await store.commit([put('a/1', 'first')])
    t.equal(await text(store, 'a/1'), 'first')
    await store.commit([put('a/1', 'second')])
    t.equal(await text(store, 'a/1'), 'second')
    await store.commit([{ del: 'a/1' }])
    t.equal(await store.get('a/1'), undefined)
    await store.commit([{ del: 'a/1' }])
    t.equal(await store.get('a/1'), undefined, 'deleting what is not there is no error')
  })

  t.test('a range has the keys of its prefix, in key order, and none of the neighbours', async (t) => {
    const { store } = await open(t)
    const inside = ['a/', 'a/!', 'a//', 'a/0', 'a/1', 'a/10', 'a/2', 'a/b/c', 'a/~', 'a/é', 'a/\u{10ffff}']
    const outside = ['', 'A/1', 'a', 'a!', 'a.', 'a0', 'a0/1', 'aa/1', 'ab/', 'b/1', '/a/1']
    await store.commit([...inside, ...outside].reverse().map((key) => put(key, `value of ${key}`)))
    t.strictSame(await keys(store, 'a/'), inside)
    t.strictSame(await keys(store, 'a/b/'), ['a/b/c'])
    t.strictSame(await keys(store, 'ab/'), ['ab/'])
    t.strictSame(await keys(store, 'none/'), [])
    for await (const [key, value] of store.range('a/')) t.equal(value.toString(), `value of ${key}`)

    t.strictSame(await keys(store, 'a/', { from: '10' }), inside.slice(5))
    t.strictSame(await keys(store, 'a/', { from: '1', before: '2' }), ['a/1', 'a/10'])
    t.strictSame(await keys(store, 'a/', { before: '!' }), ['a/'])
    t.strictSame(await keys(store, 'a/', { from: '2', before: '2' }), [])
    t.strictSame(await keys(store, 'a/', { from: '2', before: '1' }), [], 'it ends before it begins')
    t.strictSame(await keys(store, 'a/', { from: '1', most: 3 }), ['a/1', 'a/10', 'a/2'])
    t.strictSame(await keys(store, 'a/', { most: 0 }), [])
    await store.commit(numbered(700).map((key) => put(key, 'x')))
    t.strictSame(await keys(store, 'n/', { most: 600 }), numbered(700).slice(0, 600), 'more than one answer')
  })

  t.test('the last entries of a range come the other way round', async (t) => {
    const { store } = await open(t)
    const inside = ['a/', 'a/!', 'a/1', 'a/10', 'a/2', 'a/b/c', 'a/~', 'a/\u{10ffff}']
    await store.commit([...inside, 'a', 'a.', 'a0', 'b/1'].map((key) => put(key, `value of ${key}`)))
    const last = async (...how: Parameters<typeof store.last>) =>
      (await store.last(...how)).map(([key, value]) => {
        t.equal(value.toString(), `value of ${key}`)
        return key
      })
    t.strictSame(await last('a/', 100), inside.toReversed())
    t.strictSame(await last('a/', 2), ['a/\u{10ffff}', 'a/~'])
    t.strictSame(await last('a/', 2, '2'), ['a/10', 'a/1'], 'those before a key')
    t.strictSame(await last('a/', 100, '!'), ['a/'])
    t.strictSame(await last('a/', 100, ''), [])
    t.strictSame(await last('none/', 100), [])
  })

  t.test('of large entries the last ones come in several answers', async (t) => {
    const { store } = await open(t)
    const keys = numbered(12)
    for (const key of keys) await store.commit([put(key, 'x'.repeat(300_000))])
    const found: string[] = []
    let before: string | undefined
    for (;;) {
      const page = await store.last('n/', 100, before)
      if (page.length === 0) break
      for (const [key] of page) found.push(key)
      before = found.at(-1)?.slice('n/'.length)
    }
    t.strictSame(found, keys.toReversed())
  })

  t.test('keys are ordered by their UTF-8 bytes', async (t) => {
    const { store } = await open(t)
    // By UTF-16 code units, the emoji (a surrogate pair) would come before U+FFFD.
    const ordered = ['k/Z', 'k/a', 'k/ä', 'k/\u{fffd}', 'k/\u{1f600}']
    await store.commit(ordered.toReversed().map((key) => put(key, '')))
    t.strictSame(await keys(store, 'k/'), ordered)
  })

  t.test('a range that is left early does not hold the store open', async (t) => {
    const { store } = await open(t)
    await store.commit(numbered(100).map((key) => put(key, 'x')))
    for await (const [key] of store.range('n/')) {
      t.equal(key, 'n/00000')
      break
    }
    await store.close()
  })

  t.test('unusual keys', async (t) => {
    const { store } = await open(t)
    const unusual = [
      'k/%2F%00',
      'k/*?[a-z]\\',
      'k/:{}',
      'k/ \t\r\n',
      'k/\0',
      'k/日本語/🎵',
      `k/${'x'.repeat(60_000)}`,
      'k/__proto__',
    ]
    await store.commit(unusual.map((key) => put(key, `value of ${key}`)))
    for (const key of unusual) t.equal(await text(store, key), `value of ${key}`, key.slice(0, 20))
    t.strictSame(new Set(await keys(store, 'k/')), new Set(unusual))
    await store.commit(unusual.map((key) => ({ del: key })))
    t.strictSame(await keys(store, 'k/'), [])
  })

  t.test('values keep every byte', async (t) => {
    const { store, reopen } = await open(t)
    const values = new Map([
      ['v/empty', Buffer.alloc(0)],
      ['v/large', randomBytes(1024 * 1024)],
      ['v/bytes', Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))],
      ['v/nul', Buffer.from('\0')],
      ['v/not utf-8', Buffer.from([0xff, 0xfe, 0xc0, 0x80])],
    ])
    await store.commit([...values].map(([key, value]) => ({ put: key, value })))
    const check = async (store: Store) => {
      for (const [key, value] of values) t.ok((await store.get(key))?.equals(value), key)
      for await (const [key, value] of store.range('v/'))
        t.ok(values.get(key)?.equals(value), `${key} in a range`)
    }
    await check(store)
    await check(await reopen())
  })

  t.test('a text is stored as UTF-8', async (t) => {
    const { store } = await open(t)
    await store.commit([put('v/text', 'Küste 🎵')])
    t.ok((await store.get('v/text'))?.equals(Buffer.from('Küste 🎵')))
  })

  t.test('changes of one commit apply in their order', async (t) => {
    const { store } = await open(t)
    await store.commit([put('a/1', 'x'), put('a/1', 'y'), { del: 'a/2' }, put('a/2', 'z')])
    t.equal(await text(store, 'a/1'), 'y')
    t.equal(await text(store, 'a/2'), 'z')
    await store.commit([put('a/1', 'again'), { del: 'a/1' }])
    t.equal(await store.get('a/1'), undefined)
  })

  t.test('a commit is seen whole or not at all', async (t) => {
    const { store } = await open(t)
    const commits = Array.from({ length: 50 }, (_, round) => {
      return store.commit(numbered(20).map((key) => put(key, String(round))))
    })
    const done = Promise.all(commits)
    let isDone = false
    void done.then(() => {
      isDone = true
    })
    const mixed: string[][] = []
    do {
      const rounds = new Set<string>()
      for await (const [, value] of store.range('n/')) rounds.add(value.toString())
      if (rounds.size > 1) mixed.push([...rounds])
    } while (!isDone)
    await done
    t.strictSame(mixed, [], 'every range sees one round')
    t.equal((await keys(store, 'n/')).length, 20)
  })

  t.test('commits take effect and resolve in the order of the calls', async (t) => {
    const { store } = await open(t)
    const resolved: number[] = []
    const sizes = [1, 3000, 2, 5000, 1, 1, 4096, 1]
    await Promise.all(
      sizes.map(async (size, index) => {
        const filling = Array.from({ length: size }, (_, nth) => put(`f/${index}/${nth}`, ''))
        await store.commit([put('last', String(index)), ...filling])
        resolved.push(index)
      }),
    )
    t.strictSame(resolved, [...sizes.keys()])
    t.equal(await text(store, 'last'), '7')
  })

  t.test('a commit made in the moment another resolves is not forgotten', async (t) => {
    const { store } = await open(t)
    for (const key of numbered(20)) await store.commit([put(key, 'x')])
    await store.commit([put('n/a', 'x')]).then(() => store.commit([put('n/b', 'x')]))
    t.equal((await keys(store, 'n/')).length, 22)
  })

  t.test('what a commit wrote is there as soon as it resolves', async (t) => {
    const { store } = await open(t)
    await Promise.all(
      numbered(100).map(async (key) => {
        await store.commit([put(key, key)])
        t.equal(await text(store, key), key)
      }),
    )
  })

  t.test('1,000 concurrent commits', async (t) => {
    const { store, reopen } = await open(t)
    const all = numbered(1000)
    await Promise.all(all.map((key) => store.commit([put(key, key), put(`copy/${key}`, key)])))
    t.strictSame(await keys(store, 'n/'), all)
    const again = await reopen()
    t.strictSame(await keys(again, 'n/'), all)
    t.equal((await keys(again, 'copy/')).length, 1000)
  })

  t.test('an empty commit changes nothing', async (t) => {
    const { store } = await open(t)
    await store.commit([])
    await Promise.all([store.commit([]), store.commit([put('a/1', 'x')]), store.commit([])])
    t.equal(await text(store, 'a/1'), 'x')
  })

  t.test('what is told to other nodes is no state', async (t) => {
    const { store } = await open(t)
    await store.commit([{ tell: 'n/word', value: 'x' }])
    await store.commit([put('n/1', 'x'), { tell: 'n/1', value: 'y' }, { tell: 'n/2', value: 'z' }])
    t.strictSame(await keys(store, 'n/'), ['n/1'])
    t.equal(await text(store, 'n/1'), 'x')
  })

  t.test('everything survives reopening', async (t) => {
    const { store, reopen } = await open(t)
    await store.commit([put('a/1', 'x'), put('a/2', 'y'), put('b/1', 'z')])
    await store.commit([{ del: 'a/2' }])
    const again = await reopen()
    t.equal(again.driver, store.driver)
    t.strictSame(await keys(again, 'a/'), ['a/1'])
    t.equal(await text(again, 'b/1'), 'z')
  })

  t.test('closing finishes the commits made before it', async (t) => {
    const { store, reopen } = await open(t)
    const commits = numbered(100).map((key) => store.commit([put(key, 'x')]))
    await store.close()
    await Promise.all(commits)
    t.equal((await keys(await reopen(), 'n/')).length, 100)
  })

  t.test('a commit after closing rejects and leaves nothing', async (t) => {
    const { store, reopen } = await open(t)
    await store.commit([put('a/1', 'x')])
    const closing = store.close()
    await t.rejects(store.commit([put('a/2', 'x')]), 'while closing')
    await closing
    await t.rejects(store.commit([put('a/3', 'x')]), 'when closed')
    await t.rejects(store.commit([]), 'even an empty one')
    await t.rejects(store.get('a/1'))
    await store.close()
    t.strictSame(await keys(await reopen(), 'a/'), ['a/1'], 'closing twice is no error')
  })

  orderSuite(t, open)
  conditionSuite(t, open)
  numberSuite(t, open)
}

function put(key: string, value: string): Change {
  return { put: key, value }
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `n/${String(index).padStart(5, '0')}`)
}

async function text(store: Store, key: string): Promise<string | undefined> {
  return (await store.get(key))?.toString()
}

async function keys(store: Store, prefix: string, bounds?: Bounds): Promise<string[]> {
  const found: string[] = []
  for await (const [key] of store.range(prefix, bounds)) found.push(key)
  return found
}
