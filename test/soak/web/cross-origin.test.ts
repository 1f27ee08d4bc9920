import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import t from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { institutions, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'
import { createBrowser, skip } from '../../web/browser.ts'

const [own = ''] = institutions
const browser = createBrowser(t)

t.test('a page of another origin reads the names, and follows over WebSocket', { skip }, async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'false' })
  const { token } = await addUser(hub, await openApi(t, hub), own, { permissions: ['subscribe'] })
  const pem = (name: string) => readFileSync(join(dirname(hub.caPath), name))
  const station1 = createServer({ cert: pem('server.pem'), key: pem('server-key.pem') }, (_, response) => {
    response.setHeader('content-type', 'text/html').end('<title>A station</title>')
  })
  await new Promise<void>((resolve) => station1.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    station1.closeAllConnections()
    station1.close()
  })
  const httpsPort = (station1.address() as AddressInfo).port
  const { page } = await browser.open(t, { httpsPort, caPath: hub.caPath })
  const seen = await page.evaluate(
    `(async () => {
      const hub = 'https://localhost:${hub.httpsPort}'
      const headers = { authorization: 'Bearer ${token}' }
      const list = await fetch(hub + '/livestreams', { headers })
      const etag = list.headers.get('etag')
      const refused = await fetch(hub + '/livestreams')
      const json = { ...headers, 'content-type': 'application/json' }
      const made = await fetch(hub + '/auth/mqtt', { method: 'POST', headers: json, body: '{}' })
      const { username } = await made.json()
      const socket = new WebSocket('wss://localhost:${hub.httpsPort}/mqtt', 'mqtt')
      const opened = await new Promise((resolve) => {
        socket.onopen = () => resolve(true)
        socket.onerror = () => resolve(false)
      })
      const failed = (path, how) => fetch(hub + path, how).then(() => false, () => true)
      return JSON.stringify({
        list: await list.json(),
        etag,
        refused: [refused.status, (await refused.json()).message],
        username,
        opened,
        withCookies: await failed('/livestreams', { credentials: 'include' }),
        others: [await failed('/topics', { headers }), await failed('/auth/session', { method: 'PUT' })],
      })
    })()`,
  )
  const { list, ...others } = JSON.parse(String(seen))
  t.ok(list.livestreams.some(({ title }: { title: string }) => title === station().title))
  t.match(others, {
    etag: /^"[\w-]+"$/,
    refused: [401, 'Missing authentication'],
    username: /^sub-/,
    opened: true,
    withCookies: true,
    others: [true, true],
  })
})
