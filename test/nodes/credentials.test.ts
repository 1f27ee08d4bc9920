import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createCredentials, type IssuedCredential } from '../../acl/credentials.ts'
import { createSharedSpace, settled } from '../shared-store.ts'

const institution = 'urn:org:institution:a'
const noon = Date.parse('2026-03-01T12:00:00Z')
const publisher = { role: 'publisher', label: 'p', institutions: [institution] }

async function openNodes(t: Test, count = 2) {
  const space = createSharedSpace()
  const time = { now: noon, generation: 1 }
  const open = async () => {
    const store = space.openFollowed(t)
    const failures: string[] = []
    const noted: string[] = []
    const credentials = await createCredentials({
      store,
      clock: () => time.now,
      isCurrent: ({ generation }) => generation === time.generation,
      onStoreFailure: (username) => failures.push(username),
      noteDue: async (username) => void noted.push(username),
    })
    const ended: string[] = []
    credentials.onRevoked((username) => ended.push(username))
    t.teardown(credentials.close)
    store.start()
    return { store, credentials, ended, failures, noted }
  }
  const [a, b, ...others] = await Promise.all(Array.from({ length: count }, open))
  if (!a || !b) throw new Error('two nodes are needed')
  return { time, a, b, others, open }
}

t.test(
  'a credential works on the other nodes as soon as they hear of it, and no longer than it lives',
  async (t) => {
    const { a, b } = await openNodes(t)
    const { credential, password } = issued(await a.credentials.add(publisher))
    const { username } = credential
    await settled(b.store)
    t.strictSame(b.credentials.authenticate(username, password), {
      role: 'publisher',
      username,
      institutions: [institution],
      classes: [],
    })
    t.strictSame(b.credentials.get(username), credential)
    t.equal(await b.credentials.revoke(username), true)
    await settled(a.store)
    t.equal(a.credentials.authenticate(username, password), undefined)
    t.strictSame(a.ended, [username], 'its connections here are closed')
    t.strictSame(b.ended, [username])
    t.equal(await a.credentials.revoke(username), false)
  },
)

t.test('credentials made in the same second on several nodes have different names', async (t) => {
  const { a, b, others } = await openNodes(t, 3)
  const nodes = [a, b, ...others]
  const made = await Promise.all(
    nodes.flatMap(({ credentials }) => [1, 2, 3].map(() => credentials.add(publisher))),
  )
  t.equal(new Set(made.map((one) => issued(one).credential.username)).size, 9)
  await settled(...nodes.map(({ store }) => store))
  for (const { credentials } of nodes) {
    for (const { credential, password } of made.map(issued)) {
      t.ok(credentials.authenticate(credential.username, password))
    }
  }
})

t.test('a name that was revoked elsewhere is not given out again', async (t) => {
  const { a, b } = await openNodes(t)
  const { username } = issued(await a.credentials.add(publisher)).credential
  await a.credentials.revoke(username)
  t.not(issued(await b.credentials.add(publisher)).credential.username, username)
})

t.test('a rotation does not bring back what another node revokes', async (t) => {
  for (const isFirst of ['rotation', 'revocation']) {
    const { a, b } = await openNodes(t)
    const { username } = issued(await a.credentials.add(publisher)).credential
    await settled(b.store)
    const rotate = () => b.credentials.rotate(username, { revokeAfterMs: 60_000 })
    const both = [rotate, () => a.credentials.revoke(username)]
    await Promise.all((isFirst === 'rotation' ? both : both.reverse()).map((change) => change()))
    await settled(a.store, b.store)
    t.equal(a.credentials.get(username), undefined)
    t.equal(b.credentials.get(username), undefined)
  }
})

t.test('a scheduled revocation happens on all nodes, and one of them notes it', async (t) => {
  const { a, b, others, time } = await openNodes(t, 3)
  const nodes = [a, b, ...others]
  const { username } = issued(await a.credentials.add(publisher)).credential
  await settled(b.store)
  const rotated = await b.credentials.rotate(username, { revokeAfterMs: 50 })
  if ('error' in rotated) throw new Error(rotated.error)
  const replacement = rotated.credential.username
  await settled(a.store)
  t.equal(a.credentials.get(username)?.revokeAt, rotated.revokeAt)
  time.now += 50
  while (nodes.some(({ credentials }) => credentials.get(username)))
    await settled(...nodes.map(({ store }) => store))
  for (const { ended } of nodes) t.ok(ended.includes(username))
  t.strictSame(
    nodes.flatMap(({ noted }) => noted),
    [username],
  )
  for (const { credentials } of nodes) {
    t.strictSame(
      credentials.list().map((credential) => credential.username),
      [replacement],
    )
  }
})

t.test('a temporary credential ends on every node, and no audit log has it', async (t) => {
  const { time, a, b, others } = await openNodes(t, 3)
  const nodes = [a, b, ...others]
  const temporary = {
    user: 'mia@radio.example',
    revokeAt: new Date(noon + 50).toISOString(),
    login: { userId: 'mia', generation: 1 },
  }
  const request = { role: 'subscriber', label: 'page', filters: ['radio/#'] }
  const { credential, password } = issued(await a.credentials.add(request, undefined, temporary))
  const { username } = credential
  await settled(...nodes.map(({ store }) => store))
  t.match(b.credentials.authenticate(username, password), { temporaryOf: temporary.user })
  time.now += 50
  for (const { credentials } of nodes) t.equal(credentials.isValid(username), false)
  while (nodes.some(({ credentials }) => credentials.get(username)))
    await settled(...nodes.map(({ store }) => store))
  for (const { ended, noted } of nodes) {
    t.ok(ended.includes(username), 'its connections are closed')
    t.strictSame(noted, [])
  }
})

t.test(
  'a temporary credential is void on every node when its user is gone, and any node removes it',
  async (t) => {
    const { time, a, b, others } = await openNodes(t, 3)
    const nodes = [a, b, ...others]
    const revokeAt = new Date(noon + 3_600_000).toISOString()
    const temporary = { user: 'mia@radio.example', revokeAt, login: { userId: 'mia', generation: 1 } }
    const request = { role: 'subscriber', label: 'page', filters: ['radio/#'] }
    const { credential, password } = issued(await a.credentials.add(request, undefined, temporary))
    const { username } = credential
    await settled(...nodes.map(({ store }) => store))
    t.match(b.credentials.ofUser('mia'), [{ username }])
    time.generation = 2
    for (const { credentials } of nodes) t.equal(credentials.authenticate(username, password), undefined)
    await Promise.all(nodes.map(({ credentials }) => credentials.endOfUser('mia')))
    await settled(...nodes.map(({ store }) => store))
    for (const { credentials, ended, noted } of nodes) {
      t.ok(ended.includes(username), 'its connections are closed')
      t.equal(credentials.get(username), undefined)
      t.strictSame(credentials.ofUser('mia'), [])
      t.strictSame(noted, [])
    }
  },
)

t.test('a revocation that is due takes effect without the store, too', async (t) => {
  const { a, b, time } = await openNodes(t)
  const { username } = issued(await a.credentials.add(publisher)).credential
  const rotated = await a.credentials.rotate(username, { revokeAfterMs: 20 })
  if ('error' in rotated) throw new Error(rotated.error)
  await settled(b.store)
  a.store.cut()
  b.store.cut()
  time.now += 20
  while (a.failures.length === 0 || b.failures.length === 0) await nextTurn()
  t.strictSame(a.ended, [username])
  t.strictSame(a.failures, [username])
})

function issued(result: IssuedCredential | { error: string }): IssuedCredential {
  if ('error' in result) throw new Error(result.error)
  return result
}
