import t, { type Test } from 'tap'
import { createCredentials } from '../../acl/credentials.ts'
import { permissionKey } from '../../acl/principal.ts'
import { createTemporaryCredentials, type TemporaryCredential, temporaryMs } from '../../acl/temporary.ts'
import { openEmbeddedStore } from '../../store/embedded.ts'

const noon = Date.parse('2026-03-01T12:00:00.000Z')
const mia = 'mia@radio.example'
const tom = 'tom@radio.example'

t.test('a credential of a page lasts an hour, and is listed with its user and end', async (t) => {
  const { temporary, credentials, clock } = await start(t)
  const made = success(await temporary.forUser(mia, ['radio/+/control']))
  t.match(made, {
    username: /^sub-page-/,
    filters: ['radio/+/control'],
    expiresAt: '2026-03-01T13:00:00.000Z',
  })
  t.match(credentials.list(), [{ username: made.username, user: mia, revokeAt: made.expiresAt }])
  t.match(credentials.authenticate(made.username, made.password), { temporaryOf: mia })
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
  const [first, same] = await Promise.all([temporary.forStrangers(), temporary.forStrangers()])
  t.strictSame(same, first)
  t.match(credentials.list(), [{ user: 'stranger', filters: ['radio/#'] }])
  clock.now = noon + temporaryMs / 2
  const next = success(await temporary.forStrangers())
  t.not(next.username, success(first).username)
  await credentials.revoke(next.username)
  t.not(success(await temporary.forStrangers()).username, next.username, 'what was revoked is not given out')
})

t.test('those of a user that may not log in any more end at once', async (t) => {
  const { temporary, credentials } = await start(t)
  const ended: string[] = []
  credentials.onRevoked((username) => ended.push(username))
  const gone = success(await temporary.forUser(mia, ['radio/#']))
  const stays = success(await temporary.forUser(tom, ['radio/#']))
  await temporary.end(mia)
  t.strictSame(ended, [gone.username])
  t.match(credentials.list(), [{ username: stays.username }])
})

t.test('nobody takes over the sessions of others with it', async (t) => {
  const { temporary, credentials } = await start(t)
  const lasting = await credentials.add({ role: 'subscriber', label: 'car', filters: ['radio/#'] })
  if ('error' in lasting) throw new Error(lasting.error)
  const logins = [
    { username: lasting.credential.username, password: lasting.password },
    success(await temporary.forUser(mia, ['radio/#'])),
    success(await temporary.forUser(tom, ['radio/#'])),
    success(await temporary.forStrangers()),
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
    noteDue: async (name) => void noted.push(name),
  })
  t.teardown(again.close)
  t.equal(again.isValid(username), false)
  while ((await store.get(`credential/${username}`)) !== undefined) await new Promise(setImmediate)
  t.strictSame(noted, [], 'its end was known when it began: nothing for the audit log')
})

async function start(t: Test, options: { mostPerUser?: number } = {}) {
  const store = await openEmbeddedStore(t.testdir())
  t.teardown(() => store.close())
  const clock = { now: noon }
  const credentials = await createCredentials({ store, clock: () => clock.now })
  t.teardown(credentials.close)
  const temporary = createTemporaryCredentials({ credentials, clock: () => clock.now, ...options })
  return { store, credentials, temporary, clock }
}

function success(
  made: TemporaryCredential | { error: string } | { retryAfter: number },
): TemporaryCredential {
  if ('username' in made) return made
  throw new Error(JSON.stringify(made))
}
