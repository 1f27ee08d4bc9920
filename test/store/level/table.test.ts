import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openEmbeddedStore } from '../../../store/embedded.ts'
import type { Damage } from '../../../store/level/directory.ts'

/** Makes a store with several LevelDB blocks for each key prefix. */
async function makeStore(t: Test) {
  const directory = join(t.testdir(), 'store')
  const values = new Map<string, Buffer>()
  for (const place of ['a', 'every', 'journal', 'k', 'latest', 'z']) {
    for (let index = 0; index < 40; index++) values.set(`${place}/${100 + index}`, randomBytes(4_000))
  }
  const store = await openEmbeddedStore(directory)
  await store.commit([...values].map(([put, value]) => ({ put, value })))
  await store.close()
  // The next opening moves the entries from LevelDB's log to a table.
  await (await openEmbeddedStore(directory)).close()
  return { directory, values }
}

/** Overwrites a table from the place of `value` to the place of `until`, but at least 4 bytes. */
function damage(directory: string, value: Buffer, until = value): void {
  for (const name of readdirSync(directory).filter((name) => name.endsWith('.ldb'))) {
    const path = join(directory, name)
    const table = readFileSync(path)
    const at = table.indexOf(value)
    if (at < 0) continue
    table.fill(0xff, at, Math.max(at + 4, table.indexOf(until)))
    writeFileSync(path, table)
    return
  }
  throw new Error('the value is in no table')
}

t.test('the look for damage leaves out what lies in the journal, and nothing else', async (t) => {
  for (const [place, isFound] of [
    ['a', true],
    ['every', true],
    ['journal', false],
    ['k', true],
    ['latest', false],
    ['z', true],
  ] as const) {
    const { directory, values } = await makeStore(t)
    const [from, until] = [values.get(`${place}/115`), values.get(`${place}/125`)]
    // Damages whole blocks, including their type bytes, so that LevelDB fails to read them.
    damage(directory, from ?? Buffer.alloc(0), until)
    const damages: Damage[] = []
    const store = await openEmbeddedStore(directory, (damage) => damages.push(damage))
    t.match(damages, isFound ? [{ outcome: 'repaired', error: /checksum mismatch/ }] : [], place)
    t.equal(damages.length, isFound ? 1 : 0)
    for (const other of ['a/100', 'journal/100', 'k/100', 'latest/100', 'z/139']) {
      t.strictSame(await store.get(other), values.get(other), other)
    }
    await store.close()
  }
})

t.test('but a repair looks at all of it', async (t) => {
  const { directory, values } = await makeStore(t)
  for (const key of ['journal/120', 'k/120']) damage(directory, values.get(key) ?? Buffer.alloc(0))
  const damages: Damage[] = []
  const store = await openEmbeddedStore(directory, (damage) => damages.push(damage))
  t.match(damages, [{ outcome: 'repaired' }])
  t.equal(await store.get('journal/120'), undefined)
  t.equal(await store.get('k/120'), undefined)
  t.strictSame(await store.get('journal/100'), values.get('journal/100'))
  await store.close()
})

t.test(
  'a repair that loses the counter goes on behind the journal, and behind what was lost of it',
  async (t) => {
    const directory = join(t.testdir(), 'store')
    let store = await openEmbeddedStore(directory)
    const value = randomBytes(20_000)
    const entries = Array.from({ length: 20 }, (_, nth) => {
      return { put: 'journal/', value: randomBytes(4_000), numbered: { nth, at: 'key' as const } }
    })
    // `numbep/` sorts between `journal/` and `number`, and puts the two into different blocks.
    await store.commit([...entries, { put: 'numbep/', value }, { put: 'z/1', value: 'x' }])
    await store.close()
    await (await openEmbeddedStore(directory)).close()
    damage(directory, Buffer.from('number'))
    const damages: Damage[] = []
    store = await openEmbeddedStore(directory, (damage) => damages.push(damage))
    t.match(damages, [{ outcome: 'repaired' }])
    const number = await store.lastNumber()
    t.ok(number > 1_000_000, `${number}`)
    t.equal(
      await store.commit([{ put: 'journal/', value: 'x', numbered: { nth: 0, at: 'key' } }]),
      number + 1,
    )
    await store.close()
  },
)
