import t from 'tap'
import { besideAttack } from './beside.ts'

t.test('a credential has only so many persistent sessions', async (t) => {
  const { seen } = await besideAttack(t, 'offline-sessions', {
    env: { HUB_MAX_SESSIONS_PER_CREDENTIAL: '10' },
  })
  t.ok(seen.units > 0 && seen.units <= 10, `${seen.units} sessions, at most 10`)
  t.ok((seen.answers['CONNACK 3'] ?? 0) > 0, 'beyond it CONNACK 3')
})
