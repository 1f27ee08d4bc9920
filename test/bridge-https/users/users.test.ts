import t, { type Test } from 'tap'
import { createPasswords } from '../../../bridge-https/users/passwords.ts'
import type { Permission } from '../../../bridge-https/users/user.ts'
import { createUsers } from '../../../bridge-https/users/users.ts'
import { openStore } from '../../open-store.ts'
import { quickPasswords } from './quick-passwords.ts'

const institution = 'urn:org:institution:1'

async function start(t: Test, passwords = quickPasswords()) {
  const store = await openStore(t)
  const time = { now: Date.parse('2026-03-01T12:00:00Z') }
  const clock = () => time.now
  const knownInstitution = (id: string) => id === institution
  const open = () => createUsers({ store, passwords, clock, knownInstitution })
  const users = await open()
  const added = await users.add({ email: 'a@b.example', institution })
  if ('error' in added) throw new Error(added.error)
  return { users, added, time, store, open }
}

t.test('a token sets a password once, and until it expires', async (t) => {
  const { users, added, time } = await start(t)
  t.equal(await users.authenticate('a@b.example', ''), undefined, 'no password yet')
  t.equal(await users.setPassword('x', 'a long password'), undefined)
  const both = await Promise.all([
    users.setPassword(added.token, 'the first password'),
    users.setPassword(added.token, 'the second password'),
  ])
  t.equal(both.filter(Boolean).length, 1, 'of two at the same moment one')
  t.ok(await users.authenticate('A@B.example', both[0] ? 'the first password' : 'the second password'))

  const reset = await users.issueReset('a@b.example', 'mail')
  time.now += 3600_000
  t.equal(await users.setPassword(reset?.token ?? '', 'too late a password'), undefined)
})

t.test(
  'a mail that somebody asked for does not void the link of an operator, a password voids both',
  async (t) => {
    const { users, added } = await start(t)
    const mail = await users.issueReset('a@b.example', 'mail')
    const second = await users.issueReset('a@b.example', 'mail')
    t.equal(await users.setPassword(mail?.token ?? '', 'a long password'), undefined, 'one of each')
    t.ok(await users.setPassword(added.token, 'a long password'))
    t.equal(await users.setPassword(second?.token ?? '', 'a long password'), undefined)
  },
)

t.test('users survive a restart, without their secrets in the store', async (t) => {
  const { users, added, store, open } = await start(t)
  await users.setPassword(added.token, 'a long password')
  const [shown] = users.list()
  const again = await open()
  t.same(again.list(), [shown])
  t.ok(await again.authenticate('a@b.example', 'a long password'))
  const reset = await again.issueReset('a@b.example', 'operator')
  for await (const [, value] of store.range('user/')) {
    t.notMatch(value.toString(), 'a long password')
    t.notMatch(value.toString(), reset?.token ?? 'no token')
  }
})

t.test(
  'a log-out voids one log-in, a new password and a removal all, and who listens hears of it',
  async (t) => {
    const { users, added } = await start(t)
    const heard: string[] = []
    users.onLoggedOut((userId) => void heard.push(userId))
    const user = await users.setPassword(added.token, 'a long password')
    if (!user) throw new Error('no password')
    const { userId, generation } = user
    t.same(heard, [userId], 'a password')
    const isValid = async (loginId: string) =>
      (await users.ofToken(userId, generation, loginId)) !== undefined
    const end = (loginId: string) => users.endLogin({ ...user, loginId }, Date.parse('2026-04-01T12:00:00Z'))
    await end('one')
    t.same([await isValid('one'), await isValid('other')], [false, true])
    t.same(heard, [userId, userId], 'a log-out')
    const reset = await users.issueReset('a@b.example', 'operator')
    const next = await users.setPassword(reset?.token ?? '', 'another long password')
    t.equal(await isValid('other'), false)
    t.ok(await users.ofToken(userId, next?.generation ?? 0, 'other'))
    await users.remove('a@b.example')
    t.equal(await users.ofToken(userId, next?.generation ?? 0, 'other'), undefined)
    t.same(heard, Array(4).fill(userId))
  },
)

t.test('more log-outs than are remembered void all log-ins of the user', async (t) => {
  const { users, added } = await start(t)
  const user = await users.setPassword(added.token, 'a long password')
  if (!user) throw new Error('no password')
  const until = Date.parse('2026-04-01T12:00:00Z')
  const isValid = async () => (await users.ofToken(user.userId, user.generation, 'other')) !== undefined
  for (let nth = 1; nth <= 100; nth++) await users.endLogin({ ...user, loginId: `${nth}` }, until)
  t.equal(await isValid(), true)
  await users.endLogin({ ...user, loginId: '101' }, until)
  t.equal(await isValid(), false)
})

t.test('nobody is shown a secret of a user', async (t) => {
  const { users, added } = await start(t)
  const user = await users.setPassword(added.token, 'a long password')
  await users.issueReset('a@b.example', 'operator')
  const fields = ['createdAt', 'email', 'emailVerified', 'institutionId', 'permissions', 'userId']
  t.same(Object.keys(users.find('a@b.example') ?? {}).sort(), fields)
  t.same(Object.keys(users.list()[0] ?? {}).sort(), [...fields, 'hasPassword'].sort())
  t.same(Object.keys(user ?? {}).sort(), [...fields, 'generation'].sort())
})

t.test('whoever is removed while the password is checked is not let in', async (t) => {
  const { users, added } = await start(t, createPasswords())
  await users.setPassword(added.token, 'a long password')
  const entering = users.authenticate('a@b.example', 'a long password')
  await users.remove('a@b.example')
  t.equal(await entering, undefined)
  const setting = users.setPassword(added.token, 'a long password')
  t.equal(await setting, undefined)
  t.same(users.list(), [])
})

t.test('an institution outside the feed is a warning, but not for an operator, who needs none', async (t) => {
  const { users } = await start(t)
  const elsewhere = 'urn:org:institution:operators'
  const warned = (email: string, permissions: readonly Permission[]) =>
    users.add({ email, institution: elsewhere, permissions })
  const operator = await warned('operator@b.example', ['operate', 'subscribe'])
  t.same(Object.keys(operator).sort(), ['expiresAt', 'token', 'user'], 'no warning')
  for (const permissions of [['publish'], ['subscribe'], ['operate', 'publish']] as const) {
    const added = await warned(`${permissions.join('-')}@b.example`, permissions)
    t.match(added, { warning: /does not know urn:org:institution:operators/ }, permissions.join())
  }
})
