import t from 'tap'
import { loadConfig } from '../../../config/config.ts'
import { root } from '../../root.ts'
import { startTestHub } from '../../start-hub.ts'
import { openApi } from '../api.ts'

t.test('security.txt names the contact of the operator, and ends within a year', async (t) => {
  const contact = 'mailto:security@radio.example'
  const env = { HUB_SECURITY_CONTACT: contact, HUB_PUBLIC_URL: 'https://hub.example' }
  const api = await openApi(t, await startTestHub(t, env))
  const { status, headers, text } = await api.call('GET', '/.well-known/security.txt')
  t.equal(status, 200)
  t.equal(headers['content-type'], 'text/plain; charset=utf-8')
  const fields = new Map(
    text
      .trim()
      .split('\n')
      .map((line) => line.split(': ') as [string, string]),
  )
  t.equal(fields.get('Contact'), contact)
  t.equal(fields.get('Canonical'), 'https://hub.example/.well-known/security.txt')
  const days = (Date.parse(fields.get('Expires') ?? '') - Date.now()) / (24 * 3600 * 1000)
  t.ok(days > 90 && days < 365, `${days} days`)
})

t.test('without a contact there is no security.txt', async (t) => {
  const api = await openApi(t, await startTestHub(t))
  t.equal((await api.call('GET', '/.well-known/security.txt')).status, 404)
})

t.test('a contact is an address or an https URL, on one line', async (t) => {
  for (const HUB_SECURITY_CONTACT of [
    'security@radio.example',
    'http://a.example',
    'mailto:a@b.example\nContact: x',
    ' ',
  ]) {
    const loaded = loadConfig({ HUB_SECURITY_CONTACT }, root)
    t.match(loaded, { problems: [/^HUB_SECURITY_CONTACT: .*expected mailto:/] }, HUB_SECURITY_CONTACT)
  }
  t.notMatch(loadConfig({ HUB_SECURITY_CONTACT: 'https://radio.example/security' }, root), { problems: [] })
})
