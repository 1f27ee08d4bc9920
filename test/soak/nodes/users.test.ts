import t, { type Test } from 'tap'
import { createTokens } from '../../../bridge-https/users/tokens.ts'
import { createUsers } from '../../../bridge-https/users/users.ts'
import { createSigningKeys } from '../../../certs/signing-keys.ts'
import { quickPasswords } from '../../bridge-https/users/quick-passwords.ts'
import { createSharedSpace, settled } from '../../shared-store.ts'

const institution = 'urn:org:institution:a'
const request = { email: 'Kim@example.org', institution }
const leadMs = 600_000
let now = Date.parse('2026-03-01T12:00:00Z')
const clock = () => now

async function openNodes(t: Test) {
  const space = createSharedSpace()
  const open = async () => {
    const store = space.openFollowed(t)
    const passwords = quickPasswords()
    const users = await createUsers({ store, passwords, clock, knownInstitution: () => true })
    const keys = await createSigningKeys({ store, clock, keepMs: 3_600_000, leadMs })
    const tokens = createTokens({
      users,
      keys,
      clock,
      issuer: () => 'https://hub.example',
      serviceAccount: 'a@b',
    })
    return { store, users, keys, tokens }
  }
  // Both nodes find an empty store, as when they first start together.
  const [a, b] = await Promise.all([open(), open()])
  for (const { store } of [a, b]) store.start()
  await settled(a.store, b.store)
  return { a, b }
}

t.test('a user made on one node logs in on the other, until it is removed', async (t) => {
  const { a, b } = await openNodes(t)
  const added = await a.users.add(request)
  if ('error' in added) throw new Error(added.error)
  await settled(b.store)
  t.ok(b.users.find('kim@EXAMPLE.org'))
  t.match(await b.users.add(request), { error: /already/ })
  const user = await b.users.setPassword(added.token, 'correct horse')
  await settled(a.store)
  t.strictSame(await a.users.authenticate('kim@example.org', 'correct horse'), user)
  if (!user) throw new Error('no user')
  const { token } = await a.tokens.issue(user)
  t.ok(await b.tokens.userOf(token))
  t.equal(await b.users.remove('kim@example.org'), added.user.userId)
  await settled(a.store)
  t.notOk(a.users.find('kim@example.org'))
  t.equal(await a.tokens.userOf(token), undefined)
  t.notOk('error' in (await a.users.add(request)), 'the address is free again')
})

t.test('of two users with one address, made at once, there is one', async (t) => {
  const { a, b } = await openNodes(t)
  const results = await Promise.all([a, b].map(({ users }) => users.add(request)))
  t.equal(results.filter((result) => 'error' in result).length, 1)
  await settled(a.store, b.store)
  t.equal(a.users.list().length, 1)
  t.strictSame(a.users.list(), b.users.list())
})

t.test('a one-time token works once, on whichever node', async (t) => {
  const { a, b } = await openNodes(t)
  const added = await a.users.add(request)
  if ('error' in added) throw new Error(added.error)
  await settled(b.store)
  const used = await Promise.all(
    [a, b].map(({ users }, index) => users.setPassword(added.token, `password number ${index}`)),
  )
  t.equal(used.filter((user) => user !== undefined).length, 1)
  await settled(a.store, b.store)
  for (const { users } of [a, b]) {
    for (const index of [0, 1]) {
      const user = await users.authenticate(request.email, `password number ${index}`)
      t.equal(user !== undefined, used[index] !== undefined)
    }
  }
})

t.test('a new password on one node voids the tokens on all', async (t) => {
  const { a, b } = await openNodes(t)
  const added = await a.users.add(request)
  if ('error' in added) throw new Error(added.error)
  await settled(b.store)
  const { token, refreshToken } = await b.tokens.issue({ ...added.user, generation: 0 })
  await a.users.setPassword(added.token, 'correct horse')
  await settled(b.store)
  t.equal(await b.tokens.userOf(token), undefined)
  t.equal(await b.tokens.userOfRefresh(refreshToken), undefined)
})

t.test('nodes that start together sign with the same key', async (t) => {
  const { a, b } = await openNodes(t)
  t.equal(a.keys.current().kid, b.keys.current().kid)
  t.strictSame(a.keys.list(), b.keys.list())
})

t.test(
  'a rotation elsewhere: the new key signs after the lead, the old one verifies until it is dropped',
  async (t) => {
    const { a, b } = await openNodes(t)
    const added = await a.users.add(request)
    if ('error' in added) throw new Error(added.error)
    await settled(b.store)
    const old = await b.tokens.issue({ ...added.user, generation: 0 })
    const { kid } = await a.keys.rotate()
    await settled(b.store)
    t.ok(b.keys.jwks().keys.some((key) => key.kid === kid))
    t.not(b.keys.current().kid, kid)
    now += leadMs
    t.equal(b.keys.current().kid, kid)
    t.ok(await b.tokens.userOf(old.token))
    const fresh = await b.tokens.issue({ ...added.user, generation: 0 })
    t.ok(await a.tokens.userOf(fresh.token))
    await a.keys.rotate({ dropOld: true })
    await settled(b.store)
    t.equal(await b.tokens.userOf(fresh.token), undefined)
    t.equal(b.keys.jwks().keys.length, 1)
    t.ok(await a.tokens.userOf((await b.tokens.issue({ ...added.user, generation: 0 })).token))
  },
)

t.test('two rotations at once: one key after the other signs, on both nodes', async (t) => {
  const { a, b } = await openNodes(t)
  await Promise.all([a, b].map(({ keys }) => keys.rotate()))
  await settled(a.store, b.store)
  t.strictSame(
    a.keys
      .list()
      .slice(0, 3)
      .map(({ state }) => state),
    ['waiting', 'waiting', 'signing'],
  )
  t.strictSame(a.keys.list(), b.keys.list())
  now += leadMs + 1
  t.equal(a.keys.current().kid, a.keys.list()[0]?.kid)
  t.equal(a.keys.current().kid, b.keys.current().kid)
})
