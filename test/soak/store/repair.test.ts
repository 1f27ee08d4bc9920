import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openEmbeddedStore } from '../../../store/embedded.ts'
import type { Damage } from '../../../store/level/directory.ts'
import { acceptReplacement, replacementOf } from '../../../store/level/repair.ts'

/** Makes a store. LevelDB has keys 0 to 199 in a table, and keys 200 to 399 in its log. */
async function makeStore(t: Test): Promise<string> {
  const directory = join(t.testdir(), 'store')
  for (const from of [0, 200]) {
    const store = await openEmbeddedStore(directory, () => t.fail('nothing is damaged yet'))
    const commits = Array.from({ length: 200 }, (_, index) =>
      store.commit([{ put: `k/${from + index}`, value: contentFor(from + index) }]),
    )
    await Promise.all(commits)
    await store.close()
  }
  return directory
}

function contentFor(key: number): string {
  return `${key} ${Array.from({ length: 60 }, (_, index) => (key * 7919 + index * 104729) % 10_007).join(' ')}`
}

async function openDamaged(directory: string) {
  const damages: Damage[] = []
  const store = await openEmbeddedStore(directory, (damage) => damages.push(damage))
  const kept: number[] = []
  for (let key = 0; key < 400; key++) {
    const value = await store.get(`k/${key}`)
    if (value === undefined) continue
    if (value.toString() !== contentFor(key)) throw new Error(`k/${key} has another value`)
    kept.push(key)
  }
  await store.commit([{ put: 'new/key', value: 'x' }])
  await store.close()
  return { damages, kept }
}

type Find = (name: RegExp) => string

function finder(directory: string): Find {
  return (name) => join(directory, readdirSync(directory).find((file) => name.test(file)) ?? '')
}

function flip(path: string, at: number, bytes: number): void {
  const content = readFileSync(path)
  for (let index = at; index < at + bytes; index++) content[index] = (content[index] ?? 0) ^ 0xff
  writeFileSync(path, content)
}

function halve(path: string): void {
  truncateSync(path, statSync(path).size >> 1)
}

const inTable = (key: number) => key < 200
const all = () => true

t.test('what LevelDB can repair is repaired, and what was found is kept', async (t) => {
  const cases: [what: string, damage: (find: Find) => void, survives: (key: number) => boolean][] = [
    ['CURRENT is garbage', (find) => writeFileSync(find(/^CURRENT$/), 'garbage'), all],
    ['CURRENT names no manifest', (find) => writeFileSync(find(/^CURRENT$/), 'MANIFEST-00000t\n'), all],
    ['CURRENT is missing', (find) => rmSync(find(/^CURRENT$/)), all],
    ['the log is missing', (find) => rmSync(find(/\d\.log$/)), inTable],
    [
      'only the log is left',
      (find) => {
        for (const name of [/^CURRENT$/, /^MANIFEST/, /ldb$/]) rmSync(find(name))
      },
      (key) => !inTable(key),
    ],
    ['the manifest is garbage', (find) => writeFileSync(find(/^MANIFEST/), Buffer.alloc(5000, 'q')), all],
    ['the manifest has flipped bytes', (find) => flip(find(/^MANIFEST/), 20, 4), all],
    ['the manifest is cut', (find) => halve(find(/^MANIFEST/)), all],
    ['the manifest is missing', (find) => rmSync(find(/^MANIFEST/)), all],
    ['a table is missing', (find) => rmSync(find(/ldb$/)), (key) => !inTable(key)],
    [
      'a table is garbage',
      (find) => writeFileSync(find(/ldb$/), Buffer.alloc(3000, 'q')),
      (key) => !inTable(key),
    ],
    ['a table is cut', (find) => halve(find(/ldb$/)), (key) => !inTable(key)],
  ]
  for (const [what, damage, survives] of cases) {
    const directory = await makeStore(t)
    damage(finder(directory))
    const before = readdirSync(directory).filter((name) => /ldb$/.test(name))
    const { damages, kept } = await openDamaged(directory)
    const expected = Array.from({ length: 400 }, (_, key) => key).filter(survives)
    t.same(kept, expected, what)
    t.match(damages, [{ outcome: 'repaired', entries: expected.length, error: Error }], what)
    const [first] = damages
    const movedTo = first && 'movedTo' in first ? first.movedTo : ''
    t.ok(
      before.every((name) => existsSync(join(movedTo, name))),
      'what was found is kept',
    )
    t.equal(await replacementOf(directory), undefined, 'this is no replacement')
    t.same(besides(directory), [`store.damaged-${movedTo.split('.damaged-')[1]}`])
    t.same((await openDamaged(directory)).damages, [], 'and it is not damaged any more')
  }
})

t.test('a store whose first opening a crash has interrupted is no damaged one', async (t) => {
  const manifest = Buffer.from(
    '957cb9c5220001011a6c6576656c64622e4279746577697365436f6d70617261746f72020003020400',
    'hex',
  )
  const cases: [what: string, files: Record<string, Buffer | string>][] = [
    ['before CURRENT', { 'MANIFEST-000001': manifest, '000001.dbtmp': 'MANIFEST-000001\n' }],
    ['before the log', { 'MANIFEST-000001': manifest, CURRENT: 'MANIFEST-000001\n' }],
  ]
  for (const [what, files] of cases) {
    const directory = t.testdir({ store: {} })
    for (const [name, content] of Object.entries(files))
      writeFileSync(join(directory, 'store', name), content)
    t.same(await openDamaged(join(directory, 'store')), { damages: [], kept: [] }, what)
  }
})

t.test('flipped bits in a table are damage, and the other blocks survive', async (t) => {
  for (const part of [0, 0.1, 0.3, 0.5, 0.7, 0.9]) {
    const directory = await makeStore(t)
    const table = finder(directory)(/ldb$/)
    flip(table, Math.floor(statSync(table).size * part), 1)
    const { damages, kept } = await openDamaged(directory)
    t.match(
      damages,
      [{ outcome: 'repaired', entries: kept.length, error: /checksum mismatch/ }],
      `at ${part}`,
    )
    t.ok(kept.length >= 200 && kept.length < 400, `${kept.length} of 400`)
  }
})

t.test('whatever is flipped, no value comes back as another one', async (t) => {
  const good = `${await makeStore(t)}.good`
  const directory = good.replace(/\.good$/, '')
  renameSync(directory, good)
  const size = statSync(finder(good)(/ldb$/)).size
  for (let at = 7; at < size; at += Math.ceil(size / 40)) {
    rmSync(directory, { recursive: true, force: true })
    cpSync(good, directory, { recursive: true })
    flip(finder(directory)(/ldb$/), at, 1)
    // Compares every value with the one that was written.
    const { kept } = await openDamaged(directory)
    t.ok(kept.length >= 200, `a byte at ${at}: ${kept.length} of 400`)
  }
})

t.test('what a damaged log has lost is told', async (t) => {
  const directory = await makeStore(t)
  flip(finder(directory)(/\d\.log$/), 20_000, 8)
  const { damages, kept } = await openDamaged(directory)
  t.match(damages, [{ outcome: 'cut', bytes: Number }])
  t.same(kept.filter(inTable).length, 200)
  t.ok(kept.length < 400, `${kept.length} of 400`)
  t.same((await openDamaged(directory)).damages, [], 'once')
})

t.test('a number of a message that a damaged log has lost is not used again', async (t) => {
  const directory = join(t.testdir(), 'store')
  const store = await openEmbeddedStore(directory, () => t.fail('nothing is damaged yet'))
  const message = (value: string) => [{ put: 'journal/', value, numbered: { nth: 0, at: 'key' } as const }]
  await store.commit(message('the first'))
  const { size } = statSync(finder(directory)(/\d\.log$/))
  const lost = await store.commit(message('x'.repeat(100_000)))
  await store.commit([{ put: 'session/a', value: `has got up to ${lost}` }])
  await store.close()
  flip(finder(directory)(/\d\.log$/), size + 50_000, 1)
  const damages: Damage[] = []
  const again = await openEmbeddedStore(directory, (damage) => damages.push(damage))
  t.match(damages, [{ outcome: 'cut' }])
  t.ok(await again.get('session/a'), 'what was written later is there')
  const next = await again.commit(message('another'))
  t.ok(next > lost, `${next} after ${lost}`)
  await again.close()
})

t.test('a store that stays lost is replaced by an empty one, until somebody accepts that', async (t) => {
  const directory = await makeStore(t)
  for (const name of readdirSync(directory)) {
    if (/ldb$|log$|MANIFEST/.test(name)) writeFileSync(join(directory, name), Buffer.alloc(3000, 'q'))
  }
  const { damages, kept } = await openDamaged(directory)
  t.same(kept, [])
  const [damage] = damages
  t.match(damage, { outcome: 'replaced', movedTo: String, reason: 'nothing readable was left in it' })
  const replacement = await replacementOf(directory)
  t.match(damage, replacement)
  t.ok(existsSync(replacement?.movedTo ?? ''), 'what was found is kept')
  t.same((await openDamaged(directory)).damages, [], 'the new one is whole')
  t.same(await replacementOf(directory), replacement, 'and still remembered')
  await acceptReplacement(directory)
  t.equal(await replacementOf(directory), undefined)
  await acceptReplacement(directory)
})

t.test('a crash between any two steps is gone on with', async (t) => {
  const directory = await makeStore(t)
  const good = `${directory}.good`
  cpSync(directory, good, { recursive: true })
  const start = (state: () => void) => {
    for (const name of besides(directory)) {
      if (name !== 'store.good') rmSync(join(directory, '..', name), { recursive: true })
    }
    rmSync(directory, { recursive: true, force: true })
    state()
    return openDamaged(directory)
  }
  const damaged = () => {
    cpSync(good, directory, { recursive: true })
    rmSync(finder(directory)(/^CURRENT$/))
  }

  const whileCopying = await start(() => {
    damaged()
    mkdirSync(`${directory}.repairing`)
    writeFileSync(`${directory}.repairing/CURRENT`, 'half a copy')
  })
  t.match(whileCopying, { damages: [{ outcome: 'repaired', entries: 400 }], kept: { length: 400 } })

  const beforeMovingAside = await start(() => {
    damaged()
    cpSync(good, `${directory}.repaired`, { recursive: true })
  })
  t.match(beforeMovingAside, { damages: [{ outcome: 'repaired' }], kept: { length: 400 } })

  for (const isMade of [false, true]) {
    const beforeMovingIn = await start(() => {
      damaged()
      renameSync(directory, `${directory}.damaged-then`)
      cpSync(good, `${directory}.repaired`, { recursive: true })
      // The node makes its directories before it opens the store.
      if (isMade) mkdirSync(directory)
    })
    t.match(beforeMovingIn, { damages: [], kept: { length: 400 } })
  }
  t.same(besides(directory), ['store.damaged-then', 'store.good'])

  const afterTheNote = await start(() => {
    writeFileSync(`${directory}.replaced`, '{"at":"then","movedTo":"there","reason":"so"}')
  })
  t.match(afterTheNote, { damages: [], kept: { length: 0 } })
  t.same(await replacementOf(directory), { at: 'then', movedTo: 'there', reason: 'so' })
  writeFileSync(`${directory}.replaced`, '{"at"')
  t.match(await replacementOf(directory), { movedTo: 'unknown' }, 'a note that cannot be read is one')
})

t.test('a store whose log cannot be read is not opened, and keeps it', async (t) => {
  const directory = await makeStore(t)
  const log = finder(directory)(/\d\.log$/)
  renameSync(log, `${log}.aside`)
  symlinkSync(log, log) // no user can open it
  await t.rejects(openDamaged(directory), {
    message: /cannot be opened$/,
    cause: { code: 'ELOOP', path: log },
  })
  renameSync(`${log}.aside`, log)
  t.match(await openDamaged(directory), { damages: [], kept: { length: 400 } })
  t.same(besides(directory), [])
})

t.test('a directory in use is not damaged', async (t) => {
  const directory = await makeStore(t)
  const store = await openEmbeddedStore(directory)
  await t.rejects(
    openEmbeddedStore(directory, () => t.fail('mended')),
    { message: /in use/ },
  )
  await store.close()
  t.same(besides(directory), [])
})

/** The names of the files and directories beside the store. */
function besides(directory: string): string[] {
  return readdirSync(join(directory, '..'))
    .filter((name) => name !== 'store')
    .sort()
}
