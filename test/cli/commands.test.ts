import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createCredentials } from '../../acl/credentials.ts'
import { createAudit } from '../../admin/audit.ts'
import { createLifecycle } from '../../bridge-https/lifecycle/lifecycle.ts'
import { createTraffic } from '../../bridge-https/lifecycle/traffic.ts'
import { createUsers } from '../../bridge-https/users/users.ts'
import { createSigningKeys } from '../../certs/signing-keys.ts'
import type { ShownQueue } from '../../delivery/queue-list.ts'
import type { PushSubscription } from '../../delivery/webhook/subscription.ts'
import { createBans } from '../../listener/bans.ts'
import type { NodeParts } from '../../operations/node-parts.ts'
import { createCommands } from '../../operations/perform.ts'
import { openEmbeddedStore } from '../../store/embedded.ts'
import { quickPasswords } from '../bridge-https/users/quick-passwords.ts'

const A = 'urn:org:institution:a'
const publisher = { role: 'publisher', label: 'a', institutions: [A], classes: ['track'], filters: [] }

t.test('a credential is added, listed, shown, rotated and revoked', async (t) => {
  const { ask, audit } = await start(t)
  const added = await ask('credentials.add', publisher)
  const username = 'pub-a-20260301120000'
  t.strictSame(added, {
    username,
    password: added.password,
    role: 'publisher',
    institutions: [A],
    filters: [],
    classes: ['track'],
    createdAt: '2026-03-01T12:00:00.000Z',
  })
  t.match(await ask('credentials.list'), [{ username }])
  t.match(await ask('credentials.show', { username }), { username, label: 'a' })

  const rotated = await ask('credentials.rotate', { username, revokeAfter: 3600 })
  t.strictSame(
    { ...rotated, password: '' },
    {
      ...added,
      username: 'pub-a-20260301120001',
      password: '',
      replaces: username,
      revokeAt: '2026-03-01T13:00:00.000Z',
    },
  )
  t.match(await ask('credentials.rotate', { username: rotated.username }), { revokeAt: null })
  t.strictSame(await ask('credentials.revoke', { username }), { username, revoked: true })

  const entries = await audit.list()
  t.strictSame(
    entries.map(({ who, action, target }) => [who, action, target]),
    [
      ['kim', 'credentials.add', username],
      ['kim', 'credentials.rotate', username],
      ['kim', 'credentials.rotate', rotated.username],
      ['kim', 'credentials.revoke', username],
    ],
  )
  const text = JSON.stringify(entries)
  for (const { password } of [added, rotated])
    t.notOk(text.includes(password), 'never a password in the audit log')
})

t.test('names nobody knows are refused by name, and nothing is audited', async (t) => {
  const { ask, audit } = await start(t)
  for (const [command, args, message] of [
    ['credentials.show', { username: 'pub-x-1' }, /no credential "pub-x-1"/],
    ['credentials.rotate', { username: 'pub-x-1' }, /no credential "pub-x-1"/],
    ['credentials.revoke', { username: 'pub-x-1' }, /no credential "pub-x-1"/],
    ['feed.lookup', { id: 'crid://x' }, /does not know "crid:\/\/x"/],
    ['clients.count', { livestream: 'ghost' }, /no livestream "ghost"/],
    ['clients.disconnect', { clientId: 'ghost' }, /no connected client "ghost"/],
    ['sessions.show', { clientId: 'ghost' }, /no session "ghost"/],
    ['sessions.drop', { clientId: 'ghost' }, /no session "ghost"/],
    ['retained.clear', { topic: 'radio/ghost' }, /no retained message on "radio\/ghost"/],
    ['subscriptions.show', { name: 'ghost' }, /no subscription "ghost"/],
    ['subscriptions.pause', { name: 'ghost' }, /no subscription "ghost"/],
    ['subscriptions.resume', { name: 'ghost' }, /no subscription "ghost"/],
    ['subscriptions.remove', { name: 'ghost' }, /no subscription "ghost"/],
  ] as const) {
    await t.rejects(ask(command, args), { name: 'Refusal', message })
  }
  t.strictSame(await audit.list(), [])
})

t.test('a lookup says that the node has no feed', async (t) => {
  const { ask } = await start(t, { hasFeed: false })
  for (const args of [{}, { id: 'crid://x' }]) {
    await t.rejects(ask('feed.lookup', args), {
      name: 'Refusal',
      message: /^this node has no livestream feed/,
    })
  }
})

t.test('a session is shown with what its client would get now', async (t) => {
  const { ask } = await start(t)
  t.strictSame(await ask('sessions.show', { clientId: 'known' }), { clientId: 'known', queued: 3 })
})

t.test('a queue is meant by the beginning of its name, where only one begins so', async (t) => {
  const names = ['de.org.hub.subscription.0ad3', 'de.org.hub.subscription.0a77']
  const { ask, audit } = await start(t, { queueNames: [...names, 'plugins.0b', 'plugins.0bc', 'known'] })
  for (const [typed, name] of [
    ['0ad', names[0]],
    ['de.org.hub.subscription.0a7', names[1]],
    ['plugins.0b', 'plugins.0b'],
    ['plugins.0bc', 'plugins.0bc'],
  ]) {
    t.match(await ask('queues.replay', { name: typed }), { name, replayed: 2 })
    await ask('queues.attempts', { name: typed })
    await ask('queues.dead-letters', { name: typed })
  }
  t.match((await audit.list())[0], { target: names[0] })
  await t.rejects(ask('queues.replay', { name: '0a' }), { message: /^2 names begin with "0a": type more$/ })
  await t.rejects(ask('queues.replay', { name: 'd3' }), { message: 'there is no queue "d3"' })
  const ofPlugin = ask('queues.replay', { name: '0bc' })
  await t.rejects(ofPlugin, { message: 'there is no queue "0bc"' }, 'plugin targets have short names')
  t.match(await ask('subscriptions.show', { name: 'kno' }), { name: 'known' })
  const removed = ask('subscriptions.remove', { name: 'kno' })
  await t.rejects(removed, /no subscription/, 'not what cannot be undone')
})

t.test('wrong arguments are refused, whoever sends them', async (t) => {
  const { ask } = await start(t)
  for (const [command, args] of [
    ['credentials.add', {}],
    ['credentials.add', { ...publisher, role: 'admin' }],
    ['credentials.add', { ...publisher, institutions: 'x' }],
    ['credentials.add', { ...publisher, institutions: [1] }],
    ['credentials.show', {}],
    ['credentials.rotate', { username: 7 }],
    ['sessions.show', {}],
    ['sessions.drop', { clientId: '' }],
    ['subscriptions.list', { state: 'asleep' }],
    ['subscriptions.list', { limit: '5' }],
    ['subscriptions.list', { institution: 'a' }],
    ['subscriptions.list', { livestream: 'urn:org:institution:a' }],
    ['subscriptions.pause', { name: 7 }],
    ['retained.list', { filter: 'radio/#/x' }],
    ['retained.clear', { topic: 'radio/#' }],
    ['queues.replay', { name: 'known', messageId: '7', since: '2026-03-01T18:02:00Z' }],
    ['credentials.rotate', { username: 'x', revokeAfter: 1e9 }],
    ['check', { institution: 'x', payload: '' }],
    ['check', { institution: A, payload: 7 }],
    ['check', { institution: A, payload: '', class: 'x' }],
  ] as const) {
    await t.rejects(ask(command, args), { name: 'Refusal' }, `${command} ${JSON.stringify(args)}`)
  }
  const { username } = await ask('credentials.add', publisher)
  await t.rejects(ask('credentials.rotate', { username, revokeAfter: '24h' }), {
    message: /revokeAfter must be a number/,
  })
  await t.rejects(ask('credentials.rotate', { username, revokeAfter: -1 }), { message: /revokeAfter must/ })
})

t.test('changes of clients, sessions, retained messages and feed are audited', async (t) => {
  const { ask, audit } = await start(t)
  t.strictSame(await ask('clients.disconnect', { clientId: 'known' }), {
    clientId: 'known',
    disconnected: true,
  })
  t.strictSame(await ask('sessions.drop', { clientId: 'known' }), { clientId: 'known', dropped: true })
  t.strictSame(await ask('retained.clear', { topic: 'known' }), { topic: 'known', cleared: true })
  t.strictSame(await ask('feed.refresh', { force: true }), { ok: true, force: true })
  t.strictSame(
    (await audit.list()).map(({ action, target }) => [action, target]),
    [
      ['clients.disconnect', 'known'],
      ['sessions.drop', 'known'],
      ['retained.clear', 'known'],
      ['feed.refresh', 'feed'],
    ],
  )
})

t.test('a rotation that drops the old keys names the receivers that may refuse the new one', async (t) => {
  const { ask } = await start(t)
  const { kid } = await ask('keys.rotate')
  t.match(await ask('keys.list'), [{ kid, state: 'waiting' }, { state: 'signing' }])
  t.match(await ask('keys.rotate', { dropOld: true }), {
    state: 'signing',
    mayRefuse: [{ name: 'known', target: queue.target, contact: queue.contact }],
  })
})

t.test('a user is added, listed, given a link and removed', async (t) => {
  const { ask, audit } = await start(t)
  const user = { email: 'Kim@Radio.example', institution: A, permissions: ['publish'] }
  const added = await ask('users.add', user)
  t.strictSame(added, {
    email: 'kim@radio.example',
    userId: added.userId,
    resetToken: added.resetToken,
    resetUrl: `https://hub.example/#${added.resetToken}`,
    expiresAt: '2026-03-04T12:00:00.000Z',
  })
  await t.rejects(ask('users.add', user), { name: 'Refusal', message: /already a user kim@radio.example/ })
  t.match((await ask('users.add', { email: 'b@c', institution: 'urn:org:institution:z' })).warning, /feed/)
  t.match(await ask('users.list'), [
    { email: 'b@c', permissions: ['publish', 'subscribe'] },
    { email: 'kim@radio.example', userId: added.userId, permissions: ['publish'], hasPassword: false },
  ])
  const reset = await ask('users.reset-password', { email: 'KIM@radio.example' })
  t.not(reset.resetToken, added.resetToken)
  t.match(await ask('users.remove', { email: 'kim@radio.example' }), { userId: added.userId, removed: true })
  for (const command of ['users.remove', 'users.reset-password']) {
    await t.rejects(ask(command, { email: 'kim@radio.example' }), { message: /no user "kim@radio.example"/ })
  }
  const entries = await audit.list()
  t.strictSame(
    entries.map(({ action, target }) => `${action} ${target}`),
    [
      'users.add kim@radio.example',
      'users.add b@c',
      'users.reset-password kim@radio.example',
      'users.remove kim@radio.example',
    ],
  )
  t.notOk(JSON.stringify(entries).includes(added.resetToken), 'never a token in the audit log')
})

t.test('wrong users, tracks and announcements are refused, whoever sends them', async (t) => {
  const { ask } = await start(t)
  const announcement = { track: 'push', sunset: '2099-01-01', link: 'https://hub.example/' }
  for (const [command, args] of [
    ['users.add', {}],
    ['users.add', { email: 'x', institution: A }],
    ['users.add', { email: 'a@b\r\nbcc: c@d', institution: A }],
    ['users.add', { email: 'a@b', institution: 'x' }],
    ['users.add', { email: 'a@b', institution: A, permissions: ['rule'] }],
    ['lifecycle.announce', { ...announcement, track: 'all' }],
    ['lifecycle.announce', { ...announcement, sunset: 'soon' }],
    ['lifecycle.announce', { ...announcement, sunset: '2026-02-30' }],
    ['lifecycle.announce', { ...announcement, link: 'somewhere' }],
    ['lifecycle.announce', { ...announcement, link: 'https://x/>; rel="y' }],
    ['lifecycle.retire', { track: 'all' }],
    ['lifecycle.retire', { track: 'push' }],
  ] as const) {
    await t.rejects(ask(command, args), { name: 'Refusal' }, `${command} ${JSON.stringify(args)}`)
  }
})

t.test('an event is checked as the bytes it was sent as', async (t) => {
  const { ask } = await start(t)
  const payload = Buffer.from([0xff, 0x00, 0x7b]).toString('base64')
  t.strictSame(await ask('check', { institution: A, class: 'data', payload }), {
    hex: 'ff007b',
    institutionId: A,
    topicClass: 'data',
    allowedClasses: [],
  })
  t.strictSame(await ask('check', { institution: A, payload: '' }), {
    hex: '',
    institutionId: A,
    allowedClasses: [],
  })
})

t.test(
  'a change of a subscription that somebody else made first is refused, and audited as failed',
  async (t) => {
    const { ask, audit } = await start(t)
    const absent = { name: 'Refusal', message: 'there is no subscription "known"' }
    await t.rejects(ask('subscriptions.pause', { name: 'known' }), absent)
    await t.rejects(ask('subscriptions.remove', { name: 'known' }), absent)
    await t.rejects(ask('subscriptions.resume', { name: 'known' }), { message: /: it is not paused$/ })
    t.match(await audit.list(), [
      { action: 'subscriptions.pause', target: 'known', detail: { livestreamId: subscription.topicId } },
      { action: 'subscriptions.pause', detail: { failed: absent.message } },
      { action: 'subscriptions.remove', target: 'known', detail: { host: 'hooks.example', pending: 2 } },
      { action: 'subscriptions.remove', detail: { failed: absent.message } },
    ])
  },
)

const subscription: PushSubscription = {
  name: 'known',
  topicId: 'urn:org:livestream:1',
  url: 'https://hooks.example/?token=secret',
  contact: 'a@b.example',
  institutionId: A,
  serviceAccount: 'a@b',
  ackDeadlineSeconds: 20,
  retryPolicy: null,
  createdAt: '2026-03-01T12:00:00.000Z',
  createdBy: 'u',
}

const queue: ShownQueue = {
  name: 'known',
  target: subscription.url,
  contact: subscription.contact,
  state: 'idle',
  disabledAt: null,
  pausedAt: null,
  pending: 2,
  aside: 0,
  deadLetters: 0,
  oldest: null,
  stale: 0,
  dropped: 0,
  failures: 0,
  nextTry: null,
  lastReason: null,
  driver: null,
}

/** An answer of which the test needs only a part. */
function shortened<Answer>(part: object): Answer {
  return part as Answer
}

async function start(t: Test, { queueNames = ['known'], hasFeed = true } = {}) {
  const dir = t.testdir()
  const clock = () => Date.parse('2026-03-01T12:00:00Z')
  const store = await openEmbeddedStore(join(dir, 'store'))
  const credentials = await createCredentials({ store, clock, isCurrent: () => true })
  const knownInstitution = (institution: string) => institution === A
  const users = await createUsers({ store, passwords: quickPasswords(), clock, knownInstitution })
  const keys = await createSigningKeys({ store, clock, keepMs: 1000, leadMs: 600_000 })
  const traffic = await createTraffic({ store, clock, onStoreFailure: () => t.fail('not stored') })
  const lifecycle = await createLifecycle({ store, traffic, clock, stage: 'test' })
  t.teardown(async () => {
    credentials.close()
    await traffic.close()
    await store.close()
  })
  const audit = createAudit(join(dir, 'audit.log'), clock)
  const known = (name: string) => name === 'known'
  const node: NodeParts = {
    audit,
    bans: await createBans({ store, clock }),
    credentials,
    users,
    keys,
    lifecycle,
    hub: { node: 'node' },
    contacts: shortened({ list: () => [] }),
    institutionMail: undefined,
    lastUsed: () => undefined,
    status: () => shortened({}),
    trend: async () => [],
    watch: { loopOf: () => undefined, weekOf: async () => undefined },
    config: () => ({}),
    catchUp: async () => undefined,
    feed: shortened({
      status: () => ({}),
      refresh: ({ force }: { force: boolean }) => ({ ok: true, force }),
      diff: () => ({ reason: null }),
      takenOver: async () => undefined,
      lookup: () => [],
      titled: () => [],
      current: () => (hasFeed ? { byId: new Map(), byExternalId: new Map(), async *all() {} } : undefined),
    }),
    topics: shortened({ stored: new Map() }),
    broker: shortened({
      clients: () => [],
      isConnected: known,
      disconnect: known,
      sessionList: () => [],
      hasSession: known,
      session: async (clientId: string) => (known(clientId) ? { clientId, queued: 3 } : undefined),
      dropSession: async (clientId: string) => known(clientId),
      known: { persistentOf: () => new Set() },
      retained: {
        current: (topic: string) => (known(topic) ? {} : undefined),
        clear: async (topic: string) => known(topic),
      },
    }),
    deliveries: shortened({
      list: () => queueNames.map((name) => ({ ...queue, name })),
      whyClosed: () => undefined,
      whyNotSent: () => undefined,
      deadLetters: () => [{ messageId: '17' }],
      attempts: async () => [],
      replay: async (_name: string, messageId: string | undefined) => (messageId === undefined ? 2 : 1),
      subscriptions: {
        list: () => [subscription],
        find: (name: string) => (known(name) ? subscription : undefined),
        standing: () => ({ state: 'active', since: subscription.createdAt, reason: null }),
        // These answer that nothing was changed, as if another operator or the owner had been faster.
        pause: async () => false,
        resume: async () => false,
        remove: async () => false,
      },
    }),
    eventTrace: { of: async () => [], slowest: async () => [] },
    tail: unasked,
    importFromAedes: unasked,
    nowOf: async () => undefined,
    resetUrl: (token) => `https://hub.example/#${token}`,
    storeState: shortened({ replaced: () => undefined }),
    pipeline: { check: ({ payload, ...rest }) => shortened({ hex: payload.toString('hex'), ...rest }) },
  }
  const commands = createCommands(node)
  /** Returns the answer as a client gets it, through JSON. */
  async function ask(name: string, args: Record<string, unknown> = {}) {
    return JSON.parse(JSON.stringify((await commands[name]?.(args, 'kim')) ?? null))
  }
  return { ask, audit }
}

function unasked(): never {
  throw new Error('nothing asks for this')
}
