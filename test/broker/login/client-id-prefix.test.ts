import t from 'tap'
import { connect } from '../../clients.ts'
import { institutions } from '../../events.ts'
import { type Issued, startTestHub } from '../../start-hub.ts'

const [institution = ''] = institutions

t.test('clients of a credential with a prefix have client ids that begin so', async (t) => {
  const hub = await startTestHub(t)
  const request = { role: 'publisher', label: 'kw1', institutions: [institution], clientIdPrefix: 'kw:' }
  const login = await hub.ask<Issued & { clientIdPrefix: string }>('credentials.add', request)
  t.equal(login.clientIdPrefix, 'kw:')
  const next = await hub.ask<Issued & { clientIdPrefix: string }>('credentials.rotate', {
    username: login.username,
  })
  t.equal(next.clientIdPrefix, 'kw:', 'a rotation keeps it')
  for (const { username, password } of [login, next]) {
    t.match(await hub.ask('credentials.show', { username }), { clientIdPrefix: 'kw:' })
    for (const clientId of ['kw:1', 'kw:']) {
      const { client } = await connect(t, hub, { username, password }, { clientId })
      t.ok(client.connected, clientId)
      await client.endAsync()
    }
    for (const clientId of ['kw1', 'KW:1', 'x-kw:1', ''])
      await t.rejects(connect(t, hub, { username, password }, { clientId }), { code: 2 }, clientId)
  }
})

t.test('a prefix is of letters, digits and . _ : -, and not for readers', async (t) => {
  const hub = await startTestHub(t)
  const add = (request: object) => hub.ask('credentials.add', { label: 'x', ...request })
  const filters = ['radio/#']
  for (const clientIdPrefix of ['a b', 'ä', 'a/', `${'a'.repeat(65)}`, 'a\n'])
    await t.rejects(add({ role: 'subscriber', filters, clientIdPrefix }), /clientIdPrefix/, clientIdPrefix)
  await t.rejects(add({ role: 'reader', filters, clientIdPrefix: 'a' }), /clientIdPrefix is for publishers/)
  t.same(await hub.ask('credentials.list'), [])
})
