import { join } from 'node:path'
import { jwtVerify, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { createSigningKeys, type SigningKeys } from '../../../certs/signing-keys.ts'
import type { Store } from '../../../store/store.ts'
import { openStore } from '../../open-store.ts'

t.test('what is signed at any moment of a rotation can be verified', async (t) => {
  const embedded = await openStore(t)
  const used: ReturnType<typeof keys.current>[] = []
  const look = () => {
    const now = keys.current()
    if (used.every(({ kid, key }) => kid !== now.kid || key !== now.key)) used.push(now)
  }
  let isRotating = false
  const store: Store = {
    ...embedded,
    async commit(changes) {
      const first = await embedded.commit(changes)
      if (isRotating) void lookAround()
      return first
    },
  }
  // Stands for code that runs between two steps of the rotation.
  async function lookAround(): Promise<void> {
    for (let turn = 0; turn < 1000; turn++) {
      look()
      await null
    }
  }
  const keys = await createSigningKeys({ store, clock: Date.now, keepMs: 60_000, leadMs: 0 })
  look()
  isRotating = true
  await keys.rotate()
  look()

  t.equal(used.length, 2, 'the old key, then the new one')
  for (const { kid, key } of used) {
    const token = await new SignJWT({}).setProtectedHeader({ alg: 'RS256', kid }).sign(key)
    const verifier = keys.find(kid)
    if (!verifier) throw new Error(`${kid} is not known`)
    await jwtVerify(token, verifier)
  }
})

t.test('a rotation is stored as a whole or not at all', async (t) => {
  const embedded = await openStore(t)
  let left = Infinity
  const store: Store = {
    ...embedded,
    commit: (changes) => (left-- > 0 ? embedded.commit(changes) : Promise.reject(new Error('disk full'))),
  }
  const keys = await createSigningKeys({ store, clock: Date.now, keepMs: 60_000, leadMs: 0 })
  await keys.rotate()
  const before = keys.list()
  left = 0
  await t.rejects(keys.rotate({ dropOld: true }), { message: 'disk full' })
  t.same(keys.list(), before)
  t.equal(keys.current().kid, before[0]?.kid, 'the key before signs on')
  left = 1
  const made = await keys.rotate({ dropOld: true })
  t.same(keys.list(), [made])
  const again = await createSigningKeys({ store: embedded, clock: Date.now, keepMs: 60_000, leadMs: 0 })
  t.same(again.list(), [made])
})

const minuteMs = 60_000
const leadMs = 10 * minuteMs
const keepMs = 30 * 24 * 60 * minuteMs

/** Opens the keys of a store with a clock that the test sets. */
async function openKeys(t: Test) {
  const store = await openStore(t)
  const time = { now: Date.parse('2026-03-01T12:00:00Z') }
  const open = (behindMs = 0) =>
    createSigningKeys({ store, clock: () => time.now - behindMs, keepMs, leadMs })
  return { time, open, keys: await open() }
}

const published = (keys: SigningKeys) => keys.jwks().keys.map(({ kid }) => kid)

t.test("a hub's first key signs at once", async (t) => {
  const { keys } = await openKeys(t)
  const [first] = keys.list()
  t.match(first, { kid: keys.current().kid, state: 'signing', replacedAt: null })
  t.equal(first?.signsFrom, first?.createdAt)
})

t.test('a new key is in the key set at once, and signs after the lead', async (t) => {
  const { time, keys, open } = await openKeys(t)
  const old = keys.current().kid
  const made = await keys.rotate()
  const signsFrom = new Date(time.now + leadMs).toISOString()
  t.match(made, { signsFrom, state: 'waiting', replacedAt: null })
  t.strictSame(published(keys), [old, made.kid])
  time.now += leadMs - 1
  t.equal(keys.current().kid, old)
  t.match(keys.list(), [
    { kid: made.kid, state: 'waiting', signsFrom, replacedAt: null },
    { kid: old, state: 'signing', replacedAt: null },
  ])
  t.equal((await open()).current().kid, old, 'also after a restart')

  time.now += 1
  for (const [opened, what] of [
    [keys, 'here'],
    [await open(), 'on a node that starts now'],
  ] as const) {
    t.equal(opened.current().kid, made.kid, what)
    t.match(opened.list(), [
      { kid: made.kid, state: 'signing', replacedAt: null },
      { kid: old, state: 'replaced', replacedAt: signsFrom },
    ])
  }
  t.equal((await open(1)).current().kid, old, 'a node whose clock is behind goes on with the old one')
})

t.test('two rotations within the lead: each key signs for as long as the next one waits', async (t) => {
  const { time, keys } = await openKeys(t)
  const first = keys.current().kid
  const second = await keys.rotate()
  time.now += minuteMs
  const third = await keys.rotate()
  t.strictSame(published(keys), [first, second.kid, third.kid])
  const signing: [minutes: number, kid: string][] = []
  for (let minute = 1; minute <= 12; minute++, time.now += minuteMs) {
    const { kid } = keys.current()
    if (signing.at(-1)?.[1] !== kid) signing.push([minute, kid])
  }
  t.strictSame(signing, [
    [1, first],
    [10, second.kid],
    [11, third.kid],
  ])
})

t.test('a key made by a node whose clock is ahead signs before a key that is made later', async (t) => {
  const { open } = await openKeys(t)
  const ahead = await (await open(-5 * minuteMs)).rotate()
  const behind = await open()
  const later = await behind.rotate()
  t.ok(later.signsFrom > ahead.signsFrom)
  t.strictSame(published(behind).slice(1), [ahead.kid, later.kid])
  const dropping = await open(-5 * minuteMs)
  const only = await dropping.rotate({ dropOld: true })
  t.equal((await open()).current().kid, only.kid, 'the only key signs whatever the clock says')
})

t.test('a replaced key stays in the key set until its last token has expired', async (t) => {
  const { time, keys } = await openKeys(t)
  const old = keys.current().kid
  const made = await keys.rotate()
  time.now += leadMs + keepMs - 1
  t.strictSame(published(keys), [old, made.kid])
  t.ok(keys.find(old))
  time.now += 1
  t.strictSame(published(keys), [made.kid])
  t.notOk(keys.find(old))
  await keys.rotate()
  t.equal(keys.list().length, 2, 'the next rotation removes it')
})

t.test('a rotation that drops the old keys signs at once, and drops keys that wait too', async (t) => {
  const { keys } = await openKeys(t)
  await keys.rotate()
  const made = await keys.rotate({ dropOld: true })
  t.match(made, { state: 'signing', signsFrom: made.createdAt })
  t.equal(keys.current().kid, made.kid)
  t.strictSame(keys.list(), [made])
})

t.test('keys of an earlier release signed from their making on', async (t) => {
  const { time, keys } = await openKeys(t)
  const store = await openStore(t, join(t.testdir(), 'former'))
  const { key } = keys.current()
  const at = (hours: number) => new Date(time.now - hours * 60 * minuteMs).toISOString()
  const stored = (name: string, createdAt: string, replacedAt: string | null) => ({
    put: `signing-key/${name}`,
    value: JSON.stringify({ kid: name, createdAt, replacedAt, privateJwk: key, publicJwk: { kid: name } }),
  })
  await store.commit([stored('old', at(3), at(2)), stored('newer', at(2), null)])
  const former = await createSigningKeys({ store, clock: () => time.now, keepMs, leadMs })
  t.match(former.list(), [
    { kid: 'newer', state: 'signing', signsFrom: at(2), replacedAt: null },
    { kid: 'old', state: 'replaced', replacedAt: at(2) },
  ])
  await former.rotate()
  t.equal(former.current().kid, 'newer')
})
