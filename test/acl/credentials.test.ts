import { EventEmitter, once } from 'node:events'
import t, { type Test } from 'tap'
import { createCredentials, type IssuedCredential } from '../../acl/credentials.ts'
import type { Store } from '../../store/store.ts'
import { openStore } from '../open-store.ts'
import { until } from '../until.ts'

const A = 'urn:org:institution:a'
const B = 'urn:org:institution:b'
const noon = Date.parse('2026-03-01T12:00:00.250Z')

t.test('a new publisher gets its password once, and the store never holds it', async (t) => {
  const { credentials, store } = await start(t)
  const issued = success(
    await credentials.add({ role: 'publisher', label: 'swr3', institutions: [A, B, A], classes: ['track'] }),
  )
  t.match(issued.password, /^[A-Za-z0-9_-]{43}$/, '32 bytes, base64url')
  t.equal(Buffer.from(issued.password, 'base64url').length, 32)
  t.strictSame(issued.credential, {
    username: 'pub-swr3-20260301120000',
    role: 'publisher',
    label: 'swr3',
    institutions: [A, B],
    filters: [],
    classes: ['track'],
    createdAt: '2026-03-01T12:00:00.250Z',
  })
  t.strictSame(credentials.get('pub-swr3-20260301120000'), issued.credential, 'shown without salt and hash')
  t.strictSame(credentials.list(), [issued.credential])
  for await (const [, value] of store.range('credential/')) {
    t.notMatch(value.toString(), issued.password)
    t.match(JSON.parse(value.toString()), { salt: /^.{22}$/, hash: /^.{43}$/ })
  }
})

t.test('a log-in gives the principal', async (t) => {
  const { credentials } = await start(t)
  const publisher = success(
    await credentials.add({ role: 'publisher', label: 'p', institutions: [A], classes: ['data'] }),
  )
  const subscriber = success(await credentials.add({ role: 'subscriber', label: 's', filters: ['radio/#'] }))
  const { username } = publisher.credential
  const principal = { role: 'publisher', username, institutions: [A], classes: ['data'] }
  t.strictSame(credentials.authenticate(username, publisher.password), principal)
  t.strictSame(credentials.authenticate(username, Buffer.from(publisher.password)), principal)
  t.strictSame(credentials.authenticate(subscriber.credential.username, subscriber.password), {
    role: 'subscriber',
    username: subscriber.credential.username,
    filters: ['radio/#'],
  })
})

t.test('a reader does not log in over MQTT, nor anybody else over HTTPS', async (t) => {
  const { credentials } = await start(t)
  const filters = ['radio/#']
  for (const request of [
    { role: 'publisher', label: 'p', institutions: [A] },
    { role: 'subscriber', label: 's', filters },
    { role: 'reader', label: 'r', filters },
  ]) {
    const { credential, password } = success(await credentials.add(request))
    const isReader = request.role === 'reader'
    t.equal(credentials.authenticate(credential.username, password) === undefined, isReader)
    t.equal(credentials.certified(credential.username) === undefined, isReader)
    t.equal(credentials.authenticateReader(credential.username, password) !== undefined, isReader)
  }
})

t.test('everything else is refused', async (t) => {
  const { credentials } = await start(t)
  const { credential, password } = success(
    await credentials.add({ role: 'publisher', label: 'p', institutions: [A] }),
  )
  const other = success(await credentials.add({ role: 'subscriber', label: 's', filters: ['radio/#'] }))
  const { username } = credential
  for (const [name, tried] of [
    [username, other.password],
    [username, ''],
    [username, undefined],
    [username, `${password}=`],
    [username, password.toLowerCase()],
    [username, Buffer.alloc(0)],
    [username, Buffer.alloc(65_536)],
    [username.toUpperCase(), password],
    [`${username} `, password],
    ['', password],
    ['__proto__', password],
    ['constructor', undefined],
  ] as const) {
    t.equal(credentials.authenticate(name, tried), undefined, `${JSON.stringify(name)} is refused`)
  }
})

t.test('usernames are unique: the next free second', async (t) => {
  const { credentials } = await start(t)
  const added = await Promise.all(
    [1, 2, 3].map(() => credentials.add({ role: 'subscriber', label: 'player', filters: ['radio/#'] })),
  )
  t.strictSame(added.map((one) => success(one).credential.username).sort(), [
    'sub-player-20260301120000',
    'sub-player-20260301120001',
    'sub-player-20260301120002',
  ])
  await credentials.revoke('sub-player-20260301120001')
  const next = success(await credentials.add({ role: 'subscriber', label: 'player', filters: ['radio/#'] }))
  t.equal(
    next.credential.username,
    'sub-player-20260301120003',
    'a name that logs know is not given to another',
  )
})

t.test('a name that ran ahead of the clock and was revoked is not given out after a restart', async (t) => {
  const time = { now: noon }
  const clock = () => time.now
  const { store, credentials } = await start(t, { clock })
  const add = async (to: typeof credentials) =>
    success(await to.add({ role: 'subscriber', label: 'player', filters: ['radio/#'] })).credential.username
  const names = await Promise.all([1, 2, 3].map(() => add(credentials)))
  for (const username of names) await credentials.revoke(username)
  const { credentials: again } = await start(t, { clock, store })
  time.now += 2_000
  t.equal(await add(again), 'sub-player-20260301120003')
  time.now += 2_000
  t.equal(await add(again), 'sub-player-20260301120004')
  const left: string[] = []
  for await (const [key] of store.range('credential-name/')) left.push(key)
  t.same(left, [], 'and what lies behind the clock is forgotten')
})

t.test('invalid requests are values that name the field', async (t) => {
  const { credentials } = await start(t)
  const publisher = { role: 'publisher', label: 'x', institutions: [A] }
  const subscriber = { role: 'subscriber', label: 'x', filters: ['radio/#'] }
  for (const [request, error] of [
    [{ ...publisher, role: 'admin' }, /^role must be one of publisher, subscriber, reader, not "admin"/],
    [{ ...publisher, role: '__proto__' }, /^role must/],
    [{ ...publisher, label: '' }, /^label must/],
    [{ ...publisher, label: 'SWR3' }, /^label must/],
    [{ ...publisher, label: 'a'.repeat(33) }, /^label must/],
    [{ ...publisher, label: 'a\n' }, /^label must/],
    [{ ...publisher, label: 'a/b' }, /^label must/],
    [{ ...publisher, institutions: [] }, /^institution is required/],
    [{ ...publisher, institutions: ['a'] }, /^institution must be an institution URN/],
    [{ ...publisher, institutions: [A, 'urn:org:publisher:a'] }, /^institution must .*"urn:org:publisher:a"/],
    [{ ...publisher, institutions: [`${A}/#`] }, /^institution must/],
    [{ ...publisher, classes: ['tracks'] }, /^class must be one of track, control, data, not "tracks"/],
    [{ ...publisher, filters: ['radio/#'] }, /^allow is for subscribers/],
    [{ ...subscriber, filters: [] }, /^allow is required/],
    [{ ...subscriber, filters: ['radio/#/x'] }, /^allow must be a topic filter/],
    [{ ...subscriber, filters: ['#'] }, /^allow must be a filter within radio\/#, not "#"/],
    [{ ...subscriber, filters: ['radio/#', 'inbox/#'] }, /^allow must be a filter within/],
    [
      { ...subscriber, filters: ['radio//track/playing'] },
      /^allow must have no empty level, not "radio\/\/track/,
    ],
    [{ ...subscriber, filters: ['radio/'] }, /^allow must have no empty level/],
    [{ ...subscriber, filters: ['+/x'] }, /^allow must be a filter within/],
    [{ ...subscriber, filters: ['$share/g/radio/#'] }, /^allow must be a filter within/],
    [{ ...subscriber, institutions: [A] }, /^institution is for publishers/],
    [{ ...subscriber, classes: ['track'] }, /^class is for publishers/],
  ] as const) {
    t.match(await credentials.add(request), { error }, String(error))
  }
  t.strictSame(credentials.list(), [], 'and nothing was made')
})

t.test('an institution the feed does not know is a warning', async (t) => {
  const { credentials } = await start(t, { knownInstitution: (id) => id === A })
  const known = success(await credentials.add({ role: 'publisher', label: 'x', institutions: [A] }))
  t.equal(known.warning, undefined)
  const unknown = success(await credentials.add({ role: 'publisher', label: 'x', institutions: [A, B] }))
  t.match(unknown.warning, /does not know urn:org:institution:b:/)
})

t.test('a filter that no topic of an event matches is a warning', async (t) => {
  const { credentials } = await start(t)
  const warningOf = async (...filters: string[]) =>
    success(await credentials.add({ role: 'subscriber', label: 'x', filters })).warning
  const one = 'radio/urn:org:permanent-livestream:4638c4eac849c618'
  const kept = ['radio/#', 'radio/+/#', 'radio/+/+', 'radio/+/track/+', 'radio/+/control', 'radio/+/data/#']
  t.equal(await warningOf(...kept, `${one}/#`, `${one}/track/#`, `${one}/track/playing`), undefined)
  for (const filter of [
    'radio',
    'radio/+',
    'radio/+/playing',
    'radio/+/track',
    'radio/kw1/#',
    `${one}/next`,
    one,
  ]) {
    const warning = await warningOf('radio/+/control', filter)
    t.equal(warning?.startsWith(`nothing is ever sent to ${filter}: topics are radio/`), true, filter)
  }
})

t.test('rotation gives the same permissions and leaves the old one until it is revoked', async (t) => {
  const { credentials } = await start(t)
  const old = success(
    await credentials.add({ role: 'publisher', label: 'x', institutions: [A], classes: ['data'] }),
  )
  const next = success(await credentials.rotate(old.credential.username))
  t.equal(next.replaces, old.credential.username)
  t.equal(next.revokeAt, undefined)
  t.strictSame(
    { ...next.credential, username: old.credential.username, createdAt: old.credential.createdAt },
    old.credential,
  )
  t.not(next.password, old.password)
  t.ok(credentials.authenticate(old.credential.username, old.password))
  t.ok(credentials.authenticate(next.credential.username, next.password))
  t.match(await credentials.rotate('pub-nobody-1'), { error: /no credential "pub-nobody-1"/ })
  t.match(await credentials.rotate(old.credential.username, { revokeAfterMs: 0 }), {
    error: /revokeAfter must/,
  })
  t.match(await credentials.rotate(old.credential.username, { revokeAfterMs: Number.NaN }), {
    error: /revokeAfter/,
  })
  t.equal(credentials.list().length, 2, 'a refused rotation makes nothing')
})

t.test('from its time on the old credential is refused', async (t) => {
  const time = { now: noon }
  const { credentials } = await start(t, { clock: () => time.now })
  const old = success(await credentials.add({ role: 'subscriber', label: 'x', filters: ['radio/#'] }))
  const { username } = old.credential
  const next = success(await credentials.rotate(username, { revokeAfterMs: 24 * 3600 * 1000 }))
  t.equal(next.revokeAt, '2026-03-02T12:00:00.250Z')
  t.equal(credentials.get(username)?.revokeAt, '2026-03-02T12:00:00.250Z')
  time.now = noon + 24 * 3600 * 1000 - 1
  t.ok(credentials.authenticate(username, old.password))
  t.ok(credentials.certified(username))
  time.now += 1
  t.equal(credentials.authenticate(username, old.password), undefined, 'even before the timer comes round')
  t.equal(credentials.certified(username), undefined)
  t.ok(credentials.authenticate(next.credential.username, next.password))
  t.match(await credentials.rotate(username), { error: /no credential/ })
})

t.test('a scheduled revocation fires and tells', async (t) => {
  const { credentials } = await start(t, { clock: Date.now })
  const revoked = nextRevocation(credentials)
  const old = success(await credentials.add({ role: 'subscriber', label: 'x', filters: ['radio/#'] }))
  await credentials.rotate(old.credential.username, { revokeAfterMs: 20 })
  t.strictSame(await revoked, [old.credential.username])
  await until(() => credentials.get(old.credential.username) === undefined)
})

t.test('a revocation in some hours is looked at each hour, and comes at its time', async (t) => {
  const hour = 3600_000
  const looks: (() => void)[] = []
  const { setTimeout } = globalThis
  t.teardown(() => Object.assign(globalThis, { setTimeout }))
  const caught = (look: () => void, ms?: number) => {
    if (ms === hour) looks.push(look)
    return setTimeout(look, ms)
  }
  Object.assign(globalThis, { setTimeout: caught })
  const time = { now: noon }
  const { credentials } = await start(t, { clock: () => time.now })
  const old = success(await credentials.add({ role: 'subscriber', label: 'x', filters: ['radio/#'] }))
  const { username } = old.credential
  await credentials.rotate(username, { revokeAfterMs: 2 * hour })
  const revoked = nextRevocation(credentials)
  for (let passed = 1; passed <= 2; passed++) {
    t.ok(credentials.get(username))
    time.now += hour
    t.equal(looks.length, passed)
    looks.at(-1)?.()
  }
  t.strictSame(await revoked, [username])
})

t.test('a revocation is noted once, and not where somebody else has revoked', async (t) => {
  for (const isRevoked of [true, false]) {
    const time = { now: noon }
    const noted: string[] = []
    let failing = 0
    const real = await openStore(t)
    const store: Store = {
      ...real,
      commit: (changes) => (failing-- > 0 ? Promise.reject(new Error('disk full')) : real.commit(changes)),
    }
    const { credentials } = await start(t, {
      store,
      clock: () => time.now,
      retryMs: 1,
      noteDue: async (name) => void noted.push(name),
    })
    const old = success(await credentials.add({ role: 'subscriber', label: 'x', filters: ['radio/#'] }))
    const { username } = old.credential
    await credentials.rotate(username, { revokeAfterMs: 60_000 })
    time.now += 60_000
    if (!isRevoked) failing = 2
    const both = Promise.all([isRevoked && credentials.revoke(username), credentials.revokeExpired()])
    await until(() => credentials.get(username) === undefined)
    await both
    t.same(noted, isRevoked ? [] : [username])
  }
})

t.test('a scheduled revocation survives a restart', async (t) => {
  const time = { now: noon }
  const { credentials, store } = await start(t, { clock: () => time.now })
  const old = success(await credentials.add({ role: 'subscriber', label: 'x', filters: ['radio/#'] }))
  await credentials.rotate(old.credential.username, { revokeAfterMs: 3600_000 })
  credentials.close()

  time.now += 3600_000
  const { credentials: again } = await start(t, { store, clock: () => time.now })
  t.strictSame(await nextRevocation(again), [old.credential.username])
  await until(() => again.list().length === 1)
})

t.test('a scheduled revocation takes effect even when it cannot be stored', async (t) => {
  const failing = { now: false }
  const failures: unknown[] = []
  const real = await openStore(t)
  const store: Store = {
    ...real,
    commit: (changes) => (failing.now ? Promise.reject(new Error('disk full')) : real.commit(changes)),
  }
  const { credentials } = await start(t, {
    store,
    clock: Date.now,
    onStoreFailure: (...failure) => failures.push(failure),
  })
  const old = success(await credentials.add({ role: 'subscriber', label: 'x', filters: ['radio/#'] }))
  const { username } = old.credential
  await credentials.rotate(username, { revokeAfterMs: 50 })
  failing.now = true
  t.strictSame(await nextRevocation(credentials), [username])
  await until(() => failures.length > 0)
  t.match(failures, [[username, { message: 'disk full' }]])
  t.equal(credentials.authenticate(username, old.password), undefined)
  await t.rejects(credentials.add({ role: 'subscriber', label: 'x', filters: ['radio/#'] }), {
    message: 'disk full',
  })
  failing.now = false
  t.ok(
    success(await credentials.add({ role: 'subscriber', label: 'x', filters: ['radio/#'] })),
    'and it goes on',
  )
})

t.test('a scheduled revocation is noted before it is stored, and tried until it is', async (t) => {
  const noted: string[] = []
  const failures: unknown[] = []
  const problem = { now: 'the disk is full' }
  const { credentials } = await start(t, {
    clock: Date.now,
    retryMs: 10,
    onStoreFailure: (...failure) => failures.push(failure),
    async noteDue(username) {
      if (problem.now) throw new Error(problem.now)
      t.ok(credentials.get(username), 'still there')
      noted.push(username)
    },
  })
  const old = success(await credentials.add({ role: 'subscriber', label: 'x', filters: ['radio/#'] }))
  const { username } = old.credential
  await credentials.rotate(username, { revokeAfterMs: 20 })
  await nextRevocation(credentials)
  t.equal(credentials.authenticate(username, old.password), undefined, 'refused all the same')
  await until(() => failures.length > 2)
  t.match(failures[0], [username, { message: 'the disk is full' }])
  t.ok(credentials.get(username))
  problem.now = ''
  await until(() => credentials.get(username) === undefined)
  t.strictSame(noted, [username])
})

t.test('revoking ends a credential at once and for good', async (t) => {
  const { credentials, store } = await start(t)
  const { credential, password } = success(
    await credentials.add({ role: 'publisher', label: 'x', institutions: [A] }),
  )
  const revoked = nextRevocation(credentials)
  t.equal(await credentials.revoke(credential.username), true)
  t.strictSame(await revoked, [credential.username])
  t.equal(credentials.authenticate(credential.username, password), undefined)
  t.equal(await credentials.revoke(credential.username), false)
  const { credentials: again } = await start(t, { store })
  t.equal(again.authenticate(credential.username, password), undefined)
})

t.test('a rotation and a revocation at the same moment do not bring the credential back', async (t) => {
  const { credentials } = await start(t)
  const { credential } = success(await credentials.add({ role: 'publisher', label: 'x', institutions: [A] }))
  const [revoked, rotated] = await Promise.all([
    credentials.revoke(credential.username),
    credentials.rotate(credential.username, { revokeAfterMs: 1000 }),
  ])
  t.equal(revoked, true)
  t.match(rotated, { error: /no credential/ })
  t.strictSame(credentials.list(), [])
})

t.test('a rotation is stored as a whole or not at all', async (t) => {
  const real = await openStore(t)
  let left = Infinity
  const store: Store = {
    ...real,
    commit: (changes) => (left-- > 0 ? real.commit(changes) : Promise.reject(new Error('disk full'))),
  }
  const { credentials } = await start(t, { store })
  const { credential } = success(await credentials.add({ role: 'publisher', label: 'x', institutions: [A] }))
  const before = credentials.list()
  const rotate = () => credentials.rotate(credential.username, { revokeAfterMs: 60_000 })
  left = 0
  await t.rejects(rotate(), { message: 'disk full' })
  t.strictSame(credentials.list(), before)
  left = 1
  const { credential: next, revokeAt } = success(await rotate())
  const after = [{ ...credential, revokeAt }, next]
  t.strictSame(credentials.list(), after)
  const { credentials: again } = await start(t, { store: real })
  t.strictSame(again.list(), after)
})

t.test('credentials survive a restart', async (t) => {
  const { credentials, store } = await start(t)
  const { credential, password } = success(
    await credentials.add({ role: 'publisher', label: 'x', institutions: [A] }),
  )
  const { credentials: again } = await start(t, { store })
  t.ok(again.authenticate(credential.username, password))
  t.strictSame(again.list(), credentials.list())
})

type Options = Partial<Parameters<typeof createCredentials>[0]>

async function start(t: Test, options: Options = {}) {
  const store = options.store ?? (await openStore(t))
  const credentials = await createCredentials({ clock: () => noon, isCurrent: () => true, ...options, store })
  t.teardown(() => credentials.close())
  return { credentials, store }
}

function success<T extends IssuedCredential>(outcome: T | { error: string }): T {
  if ('error' in outcome) throw new Error(outcome.error)
  return outcome
}

function nextRevocation(credentials: { onRevoked(listener: (...event: unknown[]) => void): void }) {
  const events = new EventEmitter()
  credentials.onRevoked((...event) => events.emit('revoked', ...event))
  // Keeps the process alive: the timers of the credentials do not.
  const alive = setTimeout(() => undefined, 10_000)
  return once(events, 'revoked').finally(() => clearTimeout(alive))
}
