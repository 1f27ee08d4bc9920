import t from 'tap'
import type { Credential } from '../../../acl/credential.ts'
import { createSessionCredentials } from '../../../admin/aedes-redis/session-credentials.ts'

t.test('a list of users may be longer than a function has room for arguments', async (t) => {
  const named = (username: string) => ({ username }) as Credential
  const lines = Array.from({ length: 200_000 }, (_, index) => `player-${index}-*,user-${index}`)
  const { of } = createSessionCredentials(lines, { credential: named, now: Date.now })
  t.same(of('player-199999-kitchen'), named('user-199999'))
})
