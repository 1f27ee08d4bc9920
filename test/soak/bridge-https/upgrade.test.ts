import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setImmediate as immediate } from 'node:timers/promises'
import { connect } from 'node:tls'
import t, { type Test } from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { institutions, playing, station } from '../../events.ts'
import { startTestHub, type TestHub } from '../../start-hub.ts'

const [institution = ''] = institutions

t.test('a request that offers another protocol is answered like any other', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLISH_RATE: '0' })
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, institution, { permissions: ['publish'] })
  const post = (title: string, headers: string, body = JSON.stringify(playing(station(), { title }))) =>
    `POST /events/de.org.hub.v1.radio.track.playing HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n` +
    `Content-Type: application/json\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  const get = (path: string, headers: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`
  const chunks = 'Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n'
  const chunked = (headers: string) =>
    `POST /auth/login HTTP/1.1\r\nHost: x\r\n${chunks}${headers}\r\n2\r\n{}\r\n0\r\n\r\n`

  // The body looks like a request, and others stand behind it: nobody may answer those.
  const smuggled = get('/smuggled', '')
  const before = get('/nothing', '') + post('before', '')
  const behind = smuggled.repeat(200)
  const offers = ['h2c', 'TLS/1.2', 'websocket', 'h2c, websocket', 'x'].map(
    (name) => `Connection: keep-alive, Upgrade\r\nUpgrade: ${name}\r\n`,
  )
  for (const [nth, offer] of offers.entries()) {
    for (const [request, status] of [
      [get('/nothing', offer), 404],
      [get('/health', offer), 200],
      [get('/livestreams', offer), 200],
      [post(`a${nth}`, offer), 201],
      [post('', offer, smuggled), 400],
      [post('', offer, 'x'.repeat(20_000)), 400],
      [chunked(offer), 400],
    ] as const) {
      for (const pieceBytes of nth === 0 ? [100_000, 1_500, 7] : [100_000]) {
        const got = await statusesOf(t, hub, before + request, behind, pieceBytes)
        t.same(got, [404, 201, status], `${request.slice(0, 150)} in pieces of ${pieceBytes}`)
      }
    }
  }
  // Node keeps no more headers than 2,000. It refuses more, or answers without them, and still sees the offer.
  const many = get('/nothing', `Connection: Upgrade\r\n${'a:\r\n'.repeat(2100)}Upgrade: h2c\r\n`)
  t.match(await statusesOf(t, hub, before + many, behind, 100_000), [404, 201, /^(404|431)$/])
  t.notOk(hub.lines.some((line) => String(line.path).includes('smuggled')))
})

t.test('a request with which a connection leaves HTTP is answered behind those before it', async (t) => {
  const hub = await startTestHub(t)
  const get = 'GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n'
  // Its bytes and the next request come in one piece: both are read before it is answered.
  const logIn =
    'POST /auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'
  const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  const toMqtt = `${key}Sec-WebSocket-Protocol: mqtt\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`
  const close = '\x88\x80\0\0\0\0'
  for (const [last, behind, status] of [
    [`GET /mqtt HTTP/1.1\r\nHost: x\r\n${toMqtt}\r\n`, close, 101],
    ['GET /mqtt HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n', '', 400],
    ['CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n', get, 404],
  ] as const) {
    for (const before of [[], [404], [400], [404, 400], [400, 400]]) {
      const requests = before.map((each) => (each === 404 ? get : logIn)).join('')
      const got = await statusesOf(t, hub, requests + last, behind, 100_000)
      t.same(got, [...before, status], `${last.slice(0, 30)} behind ${before}`)
    }
  }
})

/** Sends `text` in pieces, the last one together with `behind`. Resolves with all statuses when the hub closes. */
async function statusesOf(t: Test, hub: TestHub, text: string, behind: string, pieceBytes: number) {
  const socket = connect({ host: 'localhost', port: hub.httpsPort, ca: readFileSync(hub.caPath) })
  t.teardown(() => socket.destroy())
  let answers = ''
  socket
    .setEncoding('latin1')
    .on('error', () => undefined)
    .on('data', (data: string) => {
      answers += data
    })
  const over = new Promise((resolve) => socket.once('close', resolve))
  await once(socket, 'secureConnect')
  let at = 0
  for (; at + pieceBytes < text.length; at += pieceBytes) {
    socket.write(text.slice(at, at + pieceBytes))
    await immediate()
  }
  socket.write(text.slice(at) + behind, 'latin1')
  await over
  return [...answers.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))
}
