import { readFileSync } from 'node:fs'
import { connect } from 'node:tls'
import t, { type Test } from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { exchange, secured } from '../../bridge-https/raw.ts'
import { institutions, playing, station } from '../../events.ts'
import { startTestHub, type TestHub } from '../../start-hub.ts'

const [own = ''] = institutions
const publish = '/events/de.org.hub.v1.radio.track.playing'
const get = (path: string, last = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${last}\r\n`
const requestsFor = (hub: TestHub, path: string) =>
  hub.lines.filter((line) => line.msg === 'request' && line.path === path).length

async function open(t: Test, hub: TestHub) {
  const options = { host: 'localhost', port: hub.httpsPort, ca: readFileSync(hub.caPath) }
  const socket = await secured(connect(options))
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  return socket
}

t.test('requests sent ahead are answered in their order, however many', async (t) => {
  const hub = await startTestHub(t)
  const count = 2000
  const ahead = Array.from({ length: count }, (_, index) => get(index % 2 ? '/' : '/nothing')).join('')
  const answer = await exchange(t, hub, ahead + get('/', 'Connection: close\r\n'))
  const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status)
  const expected = Array.from({ length: count }, (_, index) => (index % 2 ? '200' : '404'))
  t.same(statuses, [...expected, '200'])
})

t.test('requests whose answers are not read wait outside', async (t) => {
  const hub = await startTestHub(t)
  const socket = await open(t, hub)
  socket.pause()
  const sent = 200_000
  const requests = get('/nothing').repeat(1000)
  const flooded = new Promise((resolve) => socket.once('close', resolve))
  for (let written = 0; written < sent; written += 1000) socket.write(requests)
  // The hub handles the requests for `/nothing` until their connection takes no more answers. Then the number of
  // handled requests no longer grows. Meanwhile the hub also serves other clients.
  let before = -1
  while (requestsFor(hub, '/nothing') !== before) {
    before = requestsFor(hub, '/nothing')
    t.match(await exchange(t, hub, get('/', 'Connection: close\r\n')), /^HTTP\/1\.1 200 /)
  }
  t.ok(before < sent / 2, `${before} of ${sent} handled`)
  socket.destroy()
  await flooded
})

t.test('requests and bodies may be cut anywhere', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const body = JSON.stringify(playing(station(), { title: 'ä'.repeat(1000) }))
  const bytes = Buffer.from(body)
  const headers = `Host: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`
  const first = `POST ${publish} HTTP/1.1\r\n${headers}`
  const chunked = Buffer.concat([
    Buffer.from(`${first}Transfer-Encoding: chunked\r\n\r\n`),
    ...Array.from(bytes, (byte) =>
      Buffer.concat([Buffer.from('1\r\n'), Buffer.of(byte), Buffer.from('\r\n')]),
    ),
    Buffer.from('0\r\n\r\n'),
  ])
  const whole = Buffer.concat([
    Buffer.from(`${first}Connection: close\r\nContent-Length: ${bytes.length}\r\n\r\n`),
    bytes,
  ])
  const answer = await exchange(t, hub, Buffer.concat([chunked, whole]))
  const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status)
  t.same(statuses, ['201', '201'], 'a body of an event may even come byte by byte')

  const socket = await open(t, hub)
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  const ended = new Promise((resolve) => socket.once('close', resolve))
  for (const byte of whole.subarray(0, 300)) socket.write(Buffer.of(byte))
  socket.write(whole.subarray(300))
  await ended
  t.match(text, /^HTTP\/1\.1 201 /)
})

t.test('a large body in tiny pieces is refused, and the connection ends', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const headers = 'Host: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n'
  for (const [path, authorization, count] of [
    [publish, `Authorization: Bearer ${token}\r\n`, 400_000],
    ['/auth/login', '', 16_000],
  ] as const) {
    const head = `POST ${path} HTTP/1.1\r\n${headers}${authorization}\r\n`
    const answer = await exchange(t, hub, `${head}${'1\r\nx\r\n'.repeat(count)}0\r\n\r\n`).catch(
      () => 'cut off',
    )
    t.match(answer, /^HTTP\/1\.1 400 .*"errorCode":"request\.form"|^$|^cut off$/s, path)
    await hub.until(async () => requestsFor(hub, path) > 0)
    const line = hub.lines.findLast((line) => line.msg === 'request' && line.path === path)
    t.equal(line?.status, 400, path)
  }
})

t.test('a body below the limit is never 413, however many livestreams it names', async (t) => {
  // No publish rate: each of the large events below would use up the rate.
  const hub = await startTestHub(t, { HUB_PUBLISH_RATE: '0' })
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const event = (title: string) => JSON.stringify(playing(station(), { title, services }))
  const services = Array.from({ length: 60 }, (_, index) => ({
    type: 'PermanentLivestream',
    externalId: `crid://kuestenfunk.example/x/${index}`,
    publisherId: station().publisher.id,
  }))
  const body = event('x'.repeat(400_000 - event('').length))
  for (let round = 0; round < 2; round++) {
    const { status } = await api.call('POST', publish, { token, body })
    t.equal(status, 400, `${body.length} bytes for 60 livestreams`)
  }
})
