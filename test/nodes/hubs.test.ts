import t, { type Test } from 'tap'
import type { AuditEntry } from '../../admin/audit.ts'
import { connect } from '../clients.ts'
import { startRedis, withoutRedis } from '../redis-server.ts'
import { type Issued, startTestHub, type TestHub } from '../start-hub.ts'

async function startNodes(t: Test) {
  const redis = await startRedis(t)
  const env = { HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' }
  return { a: await startTestHub(t, env), b: await startTestHub(t, env) }
}

function until(hub: TestHub, holds: () => Promise<boolean>): Promise<void> {
  return hub.until(holds)
}

t.test('two nodes on one Redis are one hub for operators', { skip: withoutRedis }, async (t) => {
  const { a, b } = await startNodes(t)

  t.test(
    'a credential works on both, and a revocation on one ends its connection on the other',
    async (t) => {
      const issued = await a.subscriber('radio/#')
      await until(b, async () => (await b.ask<Issued[]>('credentials.list')).length === 1)
      const { client } = await connect(t, b, issued)
      const closed = new Promise<void>((resolve) => client.once('close', () => resolve()))
      const began = performance.now()
      await a.ask('credentials.revoke', { username: issued.username })
      await closed
      t.ok(performance.now() - began < 1000)
    },
  )

  t.test('users, keys and the life cycle', async (t) => {
    const user = { email: 'kim@a.example', institution: 'urn:org:institution:a' }
    await a.ask('users.add', user)
    await t.rejects(b.ask('users.add', user), { message: /already/ })
    const key = await b.ask<{ kid: string }>('keys.rotate')
    await until(a, async () => (await a.ask<{ kid: string }[]>('keys.list'))[0]?.kid === key.kid)
    const announcement = { track: 'push', sunset: '2030-01-01', link: 'https://hub.example/migration' }
    await a.ask('lifecycle.announce', announcement)
    await until(b, async () => {
      const [push] = await b.ask<{ state: string }[]>('lifecycle.status')
      return push?.state === 'deprecated'
    })
  })

  t.test('the audit log of one shows what was done on both', async (t) => {
    const entries = await a.ask<AuditEntry[]>('audit')
    t.same(await b.ask('audit'), entries)
    t.ok(entries.every(({ node }) => node !== undefined))
    t.strictSame(
      entries.map(({ action }) => action).filter((action) => !action.startsWith('credentials')),
      ['users.add', 'keys.rotate', 'lifecycle.announce'],
    )
  })
})
