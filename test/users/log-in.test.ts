import t from 'tap'
import { createLogIn } from '../../users/log-in.ts'

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
