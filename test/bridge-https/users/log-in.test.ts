import t from 'tap'
import { createFamiliar } from '../../../bridge-https/users/familiar.ts'
import { createLogIn } from '../../../bridge-https/users/log-in.ts'
import { originOf } from '../../../listener/origin.ts'
import { createSharedSpace } from '../../shared-store.ts'

/** Knows nobody. */
const users = { authenticate: async () => undefined, setPassword: async () => undefined }

t.test('all addresses of one IPv6 network are one', async (t) => {
  const { logIn, useReset, mayAskForMail } = createLogIn({ users, failures: 2 })
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

t.test('what strangers do to an account has no effect where people have logged in from', async (t) => {
  const store = createSharedSpace().openWatched(t)
  store.start()
  const familiar = await createFamiliar({ store, clock: Date.now })
  await familiar.remember(originOf('192.0.2.1'))
  const { logIn, mayAskForMail } = createLogIn({ users, familiar, failures: 2 })
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

t.test('one network has five times what one address has', async (t) => {
  const { logIn } = createLogIn({ users, failures: 1 })
  const refused: unknown[] = []
  for (let host = 1; host <= 6; host++) {
    const result = await logIn(`${host}@radio.example`, 'guess', `192.0.2.${host}`)
    refused.push('refused' in result && result.refused)
  }
  t.same(refused, ['wrong', 'wrong', 'wrong', 'wrong', 'wrong', 'throttled'])
})
