import t, { type Test } from 'tap'
import { createCredentials } from '../../acl/credentials.ts'
import { permissionKey } from '../../acl/principal.ts'
import {
  createTemporaryCredentials,
  type TemporaryCredential,
  type TemporaryCredentials,
  temporaryMs,
} from '../../acl/temporary.ts'
import { openStore } from '../open-store.ts'

const noon = Date.parse('2026-03-01T12:00:00.000Z')
const mia = { userId: 'mia', generation: 1, email: 'mia@radio.example' }
const tom = { userId: 'tom', generation: 1, email: 'tom@radio.example' }
const stranger = { userId: 'stranger', generation: 0, email: 'stranger' }

t.test('a credential of a page lasts an hour, and is listed with its user and end', async (t) => {
  const { temporary, credentials, clock } = await start(t)
  const made = success(await temporary.forUser(mia, ['radio/+/control']))
  t.match(made, {
    username: /^sub-page-[a-z0-9]{16}$/,
    filters: ['radio/+/control'],
    expiresAt: '2026-03-01T13:00:00.000Z',
  })
  t.match(credentials.list(), [{ username: made.username, user: mia.email, revokeAt: made.expiresAt }])
  t.match(credentials.authenticate(made.username, made.password), { temporaryOf: mia.email })
  t.equal(credentials.certified(made.username), undefined, 'no certificate stands for it')
  clock.now = noon + temporaryMs
  t.equal(credentials.authenticate(made.username, made.password), undefined)
  t.equal(credentials.isValid(made.username), false)
})

t.test('it reads within the radio tree only', async (t) => {
  const { temporary, credentials } = await start(t)
  for (const filter of ['#', 'inbox/#', 'feedback/+', '$SYS/#', 'radio/#/x', '']) {
    t.match(await temporary.forUser(mia, [filter]), { error: /allow must be/ }, filter)
  }
  t.equal(credentials.list().length, 0)
})

t.test('a user has so many at once, and others are not affected', async (t) => {
  const { temporary, credentials, clock } = await start(t, { mostPerUser: 2 })
  await temporary.forUser(mia, ['radio/#'])
  clock.now = noon + 600_000
  const second = success(await temporary.forUser(mia, ['radio/#']))
  t.strictSame(await temporary.forUser(mia, ['radio/#']), { retryAfter: 3000 }, 'until the first one ends')
  success(await temporary.forUser(tom, ['radio/#']))
  await credentials.revoke(second.username)
  success(await temporary.forUser(mia, ['radio/#']))
})

t.test('many requests at once do not get more', async (t) => {
  const { temporary, credentials } = await start(t, { mostPerUser: 3 })
  await Promise.all(Array.from({ length: 10 }, () => temporary.forUser(mia, ['radio/#'])))
  t.equal(credentials.list().length, 3)
})

t.test('strangers share one, which is followed by another before it ends', async (t) => {
  const { temporary, credentials, clock } = await start(t)
  const [first, same] = await Promise.all([
    temporary.forStrangers(stranger),
    temporary.forStrangers(stranger),
  ])
  t.strictSame(same, first)
  t.match(credentials.list(), [{ user: 'stranger', filters: ['radio/#'] }])
  clock.now = noon + temporaryMs / 2
  const next = success(await temporary.forStrangers(stranger))
  t.not(next.username, success(first).username)
  await credentials.revoke(next.username)
  t.not(
    success(await temporary.forStrangers(stranger)).username,
    next.username,
    'what was revoked is not given out',
  )
})

t.test('many at once reserve no names', async (t) => {
  const { temporary, credentials, store } = await start(t)
  const made = await Promise.all(Array.from({ length: 50 }, () => temporary.forUser(mia, ['radio/#'])))
  t.equal(new Set(made.map((one) => success(one).username)).size, 50)
  for await (const [key] of store.range('credential-name/')) t.fail(`${key} is stored`)
  const lasting = await credentials.add({ role: 'subscriber', label: 'page', filters: ['radio/#'] })
  t.match(lasting, { credential: { username: 'sub-page-20260301120000' } }, 'no name is ahead of the clock')
})

t.test('those of a user that may not log in any more are refused at once, and end', async (t) => {
  const { temporary, credentials, gone } = await start(t)
  const ended: string[] = []
  credentials.onRevoked((username) => ended.push(username))
  const held = success(await temporary.forUser(mia, ['radio/#']))
  const stays = success(await temporary.forUser(tom, ['radio/#']))
  gone.add(mia.userId)
  t.equal(credentials.authenticate(held.username, held.password), undefined)
  t.equal(credentials.isValid(held.username), false)
  await credentials.endOfUser(mia.userId)
  t.strictSame(ended, [held.username])
  t.match(credentials.list(), [{ username: stays.username }])
  t.match(await temporary.forUser(mia, ['radio/#']), { isVoid: true })
})

t.test('the connections of a user that is gone are closed although the store fails', async (t) => {
  const { temporary, credentials, store, gone } = await start(t)
  const ended: string[] = []
  credentials.onRevoked((username) => ended.push(username))
  const held = success(await temporary.forUser(mia, ['radio/#']))
  gone.add(mia.userId)
  await store.close()
  void credentials.endOfUser(mia.userId)
  t.strictSame(ended, [held.username])
})

t.test('a user that goes while the store works gets none, and leaves none', async (t) => {
  const { temporary, credentials, store, gone } = await start(t)
  const { add } = credentials
  credentials.add = async (...given) => {
    const made = await add(...given)
    gone.add(mia.userId)
    return made
  }
  const asked = Array.from({ length: 5 }, () => temporary.forUser(mia, ['radio/#']))
  for (const answer of await Promise.all(asked)) t.match(answer, { isVoid: true })
  for await (const [key] of store.range('credential/')) t.fail(`${key} is stored`)
})

t.test('a node that starts drops those of users that are gone', async (t) => {
  const { temporary, store, gone } = await start(t)
  const held = success(await temporary.forUser(mia, ['radio/#']))
  const stays = success(await temporary.forUser(tom, ['radio/#']))
  gone.add(mia.userId)
  const isCurrent = ({ userId }: { userId: string }) => !gone.has(userId)
  const again = await createCredentials({ store, clock: () => noon, isCurrent })
  t.teardown(again.close)
  t.equal(again.isValid(held.username), false, 'refused before it is dropped')
  await again.revokeExpired()
  t.match(again.list(), [{ username: stays.username }])
  t.equal(await store.get(`credential/${held.username}`), undefined)
})

t.test('one whose log-in nobody knows is refused', async (t) => {
  const { temporary, store } = await start(t)
  const { username } = success(await temporary.forUser(mia, ['radio/#']))
  const key = `credential/${username}`
  const { login: _lost, ...left } = JSON.parse(String(await store.get(key)))
  await store.commit([{ put: key, value: JSON.stringify(left) }])
  const again = await createCredentials({ store, clock: () => noon, isCurrent: () => true })
  t.teardown(again.close)
  t.equal(again.isValid(username), false)
})

t.test('nobody takes over the sessions of others with it', async (t) => {
  const { temporary, credentials } = await start(t)
  const lasting = await credentials.add({ role: 'subscriber', label: 'car', filters: ['radio/#'] })
  if ('error' in lasting) throw new Error(lasting.error)
  const logins = [
    { username: lasting.credential.username, password: lasting.password },
    success(await temporary.forUser(mia, ['radio/#'])),
    success(await temporary.forUser(tom, ['radio/#'])),
    success(await temporary.forStrangers(stranger)),
  ]
  const keys = logins.map(({ username, password }) => {
    const principal = credentials.authenticate(username, password)
    return principal && permissionKey(principal)
  })
  t.equal(new Set(keys).size, logins.length)
})

t.test('it is not rotated: the page takes another one', async (t) => {
  const { temporary, credentials } = await start(t)
  const { username } = success(await temporary.forUser(mia, ['radio/#']))
  t.match(await credentials.rotate(username), { error: /temporary/ })
})

t.test('after a restart it still ends, and leaves the store', async (t) => {
  const { temporary, store, clock } = await start(t)
  const { username } = success(await temporary.forUser(mia, ['radio/#']))
  clock.now = noon + temporaryMs + 1
  const noted: string[] = []
  const again = await createCredentials({
    store,
    clock: () => clock.now,
    isCurrent: () => true,
    noteDue: async (name) => void noted.push(name),
  })
  t.teardown(again.close)
  t.equal(again.isValid(username), false)
  while ((await store.get(`credential/${username}`)) !== undefined) await new Promise(setImmediate)
  t.strictSame(noted, [], 'its end was known when it began: nothing for the audit log')
})

async function start(t: Test, options: { mostPerUser?: number } = {}) {
  const store = await openStore(t)
  const clock = { now: noon }
  /** Users that were removed. */
  const gone = new Set<string>()
  const parts = { clock: () => clock.now, isCurrent: ({ userId }: { userId: string }) => !gone.has(userId) }
  const credentials = await createCredentials({ store, ...parts })
  t.teardown(credentials.close)
  const temporary = createTemporaryCredentials({ credentials, ...parts, ...options })
  return { store, credentials, temporary, clock, gone }
}

function success(made: Awaited<ReturnType<TemporaryCredentials['forUser']>>): TemporaryCredential {
  if ('username' in made) return made
  throw new Error(JSON.stringify(made))
}
