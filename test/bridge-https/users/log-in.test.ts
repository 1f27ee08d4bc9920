import t, { type Test } from 'tap'
import { createFamiliar } from '../../../bridge-https/users/familiar.ts'
import { createUserLogIn } from '../../../bridge-https/users/log-in.ts'
import type { KnownUser } from '../../../bridge-https/users/users.ts'
import { createSharedSpace, settled } from '../../shared-store.ts'

/** There are no accounts: every password and every reset token is wrong. */
const users = { authenticate: async () => undefined, setPassword: async () => undefined }

t.test('all addresses of one IPv6 network are one', async (t) => {
  const { logIn, useReset, mayAskForMail } = createUserLogIn({ users, failures: 2 })
  const from = async (address: string) => {
    const result = await logIn(`${Math.random()}@radio.example`, 'guess', address)
    return 'refused' in result && result.refused
  }
  t.equal(await from('2001:db8:1:1::1'), 'wrong')
  t.equal(await from('2001:0db8:1:1:ffff::2'), 'wrong')
  t.equal(await from('2001:db8:1:1:abcd:ef01:2345:6789'), 'throttled', 'whoever has one has 2^64 of them')
  t.match(await useReset('guess', 'a long password', '2001:db8:1:1::3'), { refused: 'throttled' })
  t.equal(await from('2001:db8:1:2::1'), 'wrong', 'another network')
  for (const address of ['::ffff:192.0.2.1', '::ffff:192.0.2.2', '192.0.2.3', 'unknown']) {
    t.equal(await from(address), 'wrong', address)
  }
  t.equal(await from('192.0.2.1'), 'wrong')
  t.equal(await from('192.0.2.1'), 'throttled', 'IPv4 in IPv6 clothes is the same address')
  for (const address of ['2001:db8:9::1', '2001:db8:9::2']) await mayAskForMail('a@radio.example', address)
  t.match(await mayAskForMail('b@radio.example', '2001:db8:9::3'), { retryAfter: Number })
})

t.test(
  'an account is one however it is written, and what is refused takes nothing from others',
  async (t) => {
    const { logIn } = createUserLogIn({ users, failures: 4 })
    const from = async (email: string) => {
      const result = await logIn(email, 'guess', '192.0.2.1')
      return 'refused' in result && result.refused
    }
    t.equal(await from('one@radio.example'), 'wrong')
    t.equal(await from('One@Radio.example'), 'wrong')
    for (let nth = 0; nth < 10; nth++) t.equal(await from('ONE@radio.example'), 'throttled')
    t.equal(await from('other@radio.example'), 'wrong')
    t.equal(await from('third@radio.example'), 'wrong')
    t.equal(await from('fourth@radio.example'), 'throttled', 'four from one address')
  },
)

t.test('what strangers do to an account has no effect where its owner has logged in', async (t) => {
  const store = createSharedSpace().openFollowed(t)
  const familiar = await createFamiliar({ store, clock: Date.now })
  store.start()
  const owned = { ...users, authenticate: async (_: string, password: string) => ownerFor(password) }
  const { logIn, mayAskForMail } = createUserLogIn({ users: owned, familiar, failures: 2 })
  await logIn('a@radio.example', 'right', '192.0.2.1')
  await settled(store)
  const from = async (address: string) => {
    const result = await logIn('a@radio.example', 'guess', address)
    return 'refused' in result && result.refused
  }
  for (let stranger = 0; stranger < 20; stranger++) t.equal(await from(`198.51.${stranger}.1`), 'wrong')
  t.equal(await from('198.51.100.1'), 'throttled', 'many places together do not guess without end')
  t.equal(await from('192.0.2.1'), 'wrong')
  t.equal(await from('192.0.2.77'), 'wrong', 'another address of the network')
  t.equal(await from('192.0.2.78'), 'throttled', 'as many as failures in the whole network')

  const mail = async (address: string) => {
    const asked = await mayAskForMail('a@radio.example', address)
    return 'mailNow' in asked && asked.mailNow
  }
  for (const [index, expected] of [true, true, true, false].entries()) {
    t.equal(await mail(`203.0.${index}.1`), expected, 'three for all strangers together')
  }
  t.equal(await mail('192.0.2.5'), true)
})

t.test('a log-in of one\u2019s own somewhere lifts no limit on the account of somebody else', async (t) => {
  const { logIn, mayAskForMail, remembered } = await startWith(t, ['own@radio.example'])
  const victim = 'victim@radio.example'
  const places = Array.from({ length: 30 }, (_, index) => `198.51.${index}.1`)
  for (const place of places) t.match(await logIn('own@radio.example', 'right', place), { user: {} })
  await remembered()
  const guesses = await outcomesOf(places.map((place) => () => logIn(victim, 'guess', place)))
  t.same(countsOf(guesses), { wrong: 20, throttled: 10 }, 'ten times HUB_LOGIN_FAILURES, as for strangers')
  t.equal(await mailed(mayAskForMail, victim, places), 3)
})

t.test('an account that exists is treated by strangers like one that does not', async (t) => {
  const { logIn, mayAskForMail, remembered } = await startWith(t, ['real@radio.example'])
  await logIn('real@radio.example', 'right', '192.0.2.1')
  await remembered()
  const seen = []
  for (const [email, net] of [
    ['real@radio.example', '198.51'],
    ['none@radio.example', '203.0'],
  ] as const) {
    const places = Array.from({ length: 30 }, (_, index) => `${net}.${index}.1`)
    const guesses = await outcomesOf(places.map((place) => () => logIn(email, 'guess', place)))
    seen.push([guesses, await mailed(mayAskForMail, email, places)])
  }
  t.same(seen[0], seen[1])
})

t.test('many known places of one account get ten mails an hour together', async (t) => {
  const { logIn, mayAskForMail, remembered } = await startWith(t, ['own@radio.example'])
  const places = Array.from({ length: 20 }, (_, index) => `198.51.${index}.1`)
  for (const place of places) await logIn('own@radio.example', 'right', place)
  await remembered()
  t.equal(await mailed(mayAskForMail, 'own@radio.example', places), 10)
  t.equal(await mailed(mayAskForMail, 'own@radio.example', ['203.0.113.1']), 1, 'strangers have their own')
})

t.test('a new password by a token makes its place known for that account', async (t) => {
  const { logIn, useReset, remembered } = await startWith(t, ['own@radio.example'])
  await useReset('token of own@radio.example', 'new', '192.0.2.1')
  await remembered()
  for (let stranger = 0; stranger < 20; stranger++) {
    await logIn('own@radio.example', 'guess', `198.51.${stranger}.1`)
  }
  t.match(await logIn('own@radio.example', 'right', '203.0.113.1'), { refused: 'throttled' })
  t.match(await logIn('own@radio.example', 'right', '192.0.2.1'), { user: {} })
})

t.test('all IPv6 networks of one /48 guess as one', async (t) => {
  const { logIn } = createUserLogIn({ users, failures: 2 })
  const from = async (address: string) => {
    const result = await logIn('a@radio.example', 'guess', address)
    return 'refused' in result && result.refused
  }
  t.equal(await from('2001:db8:1:1::1'), 'wrong')
  t.equal(await from('2001:db8:1:2::1'), 'wrong')
  t.equal(await from('2001:db8:1:3::1'), 'throttled')
  t.equal(await from('2001:db8:2:1::1'), 'wrong', 'another /48')
})

t.test('one network has five times what one address has', async (t) => {
  const { logIn } = createUserLogIn({ users, failures: 1 })
  const refused: unknown[] = []
  for (let host = 1; host <= 6; host++) {
    const result = await logIn(`${host}@radio.example`, 'guess', `192.0.2.${host}`)
    refused.push('refused' in result && result.refused)
  }
  t.same(refused, ['wrong', 'wrong', 'wrong', 'wrong', 'wrong', 'throttled'])
})

type LogIn = ReturnType<typeof createUserLogIn>

/** The log-in of a hub with these accounts, each with the password `right`. */
async function startWith(t: Test, emails: readonly string[]) {
  const store = createSharedSpace().openFollowed(t)
  const familiar = await createFamiliar({ store, clock: Date.now })
  store.start()
  const owned = {
    authenticate: async (email: string, password: string) =>
      emails.includes(email) ? ownerFor(password, email) : undefined,
    setPassword: async (token: string) => {
      const email = token.replace('token of ', '')
      return emails.includes(email) ? ownerFor('right', email) : undefined
    },
  }
  const login = createUserLogIn({ users: owned, familiar, failures: 2 })
  return { ...login, remembered: () => settled(store) }
}

async function outcomesOf(tries: (() => ReturnType<LogIn['logIn']>)[]): Promise<string[]> {
  const outcomes: string[] = []
  for (const attempt of tries) {
    const result = await attempt()
    outcomes.push('refused' in result ? result.refused : 'in')
  }
  return outcomes
}

function countsOf(outcomes: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}

/** Asks for a reset mail from each address. Returns how many mails are sent. */
async function mailed(ask: LogIn['mayAskForMail'], email: string, places: readonly string[]) {
  let mails = 0
  for (const place of places) {
    const asked = await ask(email, place)
    if ('mailNow' in asked && asked.mailNow) mails++
  }
  return mails
}

/** The owner of the account if the password is `right`, otherwise undefined. */
function ownerFor(password: string, email = 'a@radio.example'): KnownUser | undefined {
  if (password !== 'right') return undefined
  const institutionId = 'urn:org:institution:1'
  return {
    userId: email,
    email,
    institutionId,
    permissions: [],
    emailVerified: true,
    createdAt: '',
    generation: 1,
  }
}
