import t, { type Test } from 'tap'
import { createUserLogIn } from '../../bridge-https/users/log-in.ts'
import { createUsers } from '../../bridge-https/users/users.ts'
import { createLoginLimit } from '../../listener/login-limit.ts'
import { createPublishRate } from '../../listener/publish-rate.ts'
import { createAddedCounts } from '../../store/nodes/added-counts.ts'
import type { Store } from '../../store/store.ts'
import { quickPasswords } from '../bridge-https/users/quick-passwords.ts'
import { createSharedSpace } from '../shared-store.ts'
import { until } from '../until.ts'

function openNodes<Part>(t: Test, create: (store: Store) => Part): { a: Part; b: Part } {
  const space = createSharedSpace()
  const open = () => {
    const store = space.openFollowed(t)
    const part = create(store)
    store.start()
    return part
  }
  return { a: open(), b: open() }
}

/**
 * Returns a function that tells whether other nodes have told `expected` counts on this channel, in one tell or in
 * several. Create the limit before this call: the limit then hears of the counts first, and has added them when the
 * function returns true.
 */
function hear(store: Store, channel: string, expected: number): () => boolean {
  let heard = 0
  store.onTold(`tally ${channel}`, (value) => {
    const counts: [string, number][] = JSON.parse(value.toString())
    for (const [, count] of counts) heard += count
  })
  return () => heard >= expected
}

t.test('counts reach the other nodes in few commits', async (t) => {
  const space = createSharedSpace()
  const [sender, receiver] = [space.openFollowed(t), space.openFollowed(t)]
  const told: [string, number][] = []
  let commits = 0
  const commit: Store['commit'] = (changes) => {
    commits++
    return sender.commit(changes)
  }
  const count = createAddedCounts({ ...sender, commit }, 'test', () => t.fail('its own counts it knows'))
  createAddedCounts(receiver, 'test', (...one) => told.push(one))
  sender.start()
  receiver.start()
  for (let time = 0; time < 1000; time++) count(time % 2 === 0 ? 'even' : 'odd')
  await until(() => told.length === 2)
  t.strictSame(told, [
    ['even', 500],
    ['odd', 500],
  ])
  t.equal(commits, 1)
  sender.cut()
  count('lost')
  await until(() => commits === 2)
  sender.restore()
  count('again')
  await until(() => told.length === 3)
  t.strictSame(told[2], ['again', 1])
})

t.test('failed log-ins of an address add up', async (t) => {
  const { a, b } = openNodes(t, (store) => createLoginLimit(4, store))
  for (let time = 0; time < 3; time++) await a.failed('192.0.2.1')
  for (let time = 0; time < 2; time++) await b.failed('192.0.2.1')
  const isBlocked = async ({ secondsBlocked }: typeof a) => (await secondsBlocked('192.0.2.1')) !== undefined
  await until(async () => (await isBlocked(a)) && (await isBlocked(b)))
  t.equal(await b.secondsBlocked('192.0.2.2'), undefined)
})

t.test('failed log-ins over HTTPS add up by address and by account', async (t) => {
  const space = createSharedSpace()
  const open = async () => {
    const { store, logIn } = await openLogIn(t, space, 4)
    const heard = ['login-address', 'login-account-network'].map((limit) => hear(store, limit, 6))
    store.start()
    return { ...logIn, isTold: () => heard.every((isTold) => isTold()) }
  }
  const [a, b] = [await open(), await open()]
  const fail = (node: typeof a, email: string, address: string) =>
    node.logIn(email, 'wrong password', address)
  for (const n of [1, 2]) await fail(a, 'victim@a.example', `192.0.2.${n}`)
  for (const n of [1, 2, 3, 4]) await fail(a, `${n}@a.example`, '192.0.2.7')
  await until(b.isTold)
  t.match(await b.useReset('no token', 'a new password', '192.0.2.7'), { retryAfter: Number })
  t.match(await b.useReset('no token', 'a new password', '192.0.2.8'), { refused: 'wrong' })
  // An account is allowed 4 failures in a /24 network. After 2 on node a, node b allows 2.
  const answers = []
  for (const n of [10, 11, 12]) answers.push(await fail(b, 'victim@a.example', `192.0.2.${n}`))
  t.match(answers, [{ refused: 'wrong' }, { refused: 'wrong' }, { retryAfter: Number }])
})

t.test('mails of reset links add up', async (t) => {
  const space = createSharedSpace()
  const open = async () => {
    const { store, logIn } = await openLogIn(t, space, 100)
    const isTold = hear(store, 'reset-mail', 3)
    store.start()
    return { ...logIn, isTold }
  }
  const [a, b] = [await open(), await open()]
  for (let time = 0; time < 3; time++) await a.mayAskForMail('kim@a.example', '192.0.2.1')
  await until(b.isTold)
  t.same(await b.mayAskForMail('kim@a.example', '192.0.2.2'), { mailNow: false })
  t.same(await b.mayAskForMail('lee@a.example', '192.0.2.2'), { mailNow: true })
})

t.test('events of a credential add up', async (t) => {
  const { a, b } = openNodes(t, (store) => withHearing(store, 'mqtt-publish'))
  const now = performance.now()
  for (let event = 0; event < 20; event++) t.equal(a.take('p', now), 0)
  await until(b.isTold)
  // Without the 20 events on node a, node b would not delay its first event.
  t.ok(b.take('p', b.toldAt()) > 0)
  t.equal(b.take('other', performance.now()), 0)
})

for (const channel of ['mqtt-publish', 'https-publish']) {
  t.test(`what an event cost counts on the other nodes as well (${channel})`, async (t) => {
    const { a, b } = openNodes(t, (store) => withHearing(store, channel))
    const now = performance.now()
    a.charge('p', 19, now)
    a.take('p', now)
    await until(b.isTold)
    t.ok(b.take('p', b.toldAt()) > 0)
    t.equal(b.take('other', performance.now()), 0)
  })
}

function withHearing(store: Store, channel: string) {
  const rate = createPublishRate(10, store, channel)
  /** When the counts came in. The bucket fills as time passes, so an event is tried at this moment. */
  let toldAt = Number.NaN
  store.onTold(`tally ${channel}`, () => {
    toldAt = performance.now()
  })
  return { ...rate, isTold: hear(store, channel, 20), toldAt: () => toldAt }
}

async function openLogIn(t: Test, space: ReturnType<typeof createSharedSpace>, failures: number) {
  const store = space.openFollowed(t)
  const parts = { store, passwords: quickPasswords(), clock: Date.now, knownInstitution: () => true }
  return { store, logIn: createUserLogIn({ store, users: await createUsers(parts), failures }) }
}
