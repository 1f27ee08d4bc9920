import t from 'tap'
import { createServiceTokens } from '../../../delivery/webhook/service-tokens.ts'

const minute = 60_000

t.test('a token is used again for ten minutes, and not after the clock was set back', async (t) => {
  let now = Date.parse('2026-01-31T12:00:00Z')
  let issued = 0
  const tokenFor = createServiceTokens(
    async () => `token ${++issued}`,
    () => 'key',
    () => now,
  )
  const token = () => tokenFor('https://a.example/', 'a@b.example')
  t.equal(await token(), 'token 1')
  now += 9 * minute
  t.equal(await token(), 'token 1')
  now += 2 * minute
  t.equal(await token(), 'token 2')
  now -= 60 * minute
  t.equal(await token(), 'token 3', 'receivers refuse one that was issued in an hour')
  now += minute
  t.equal(await token(), 'token 3')
})
