import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:tls'
import t, { type Test } from 'tap'
import { openApi } from '../bridge-https/api.ts'
import { connectPublisher } from '../clients.ts'
import { playing, station } from '../events.ts'
import { startTestHub, type TestHub } from '../start-hub.ts'

const livestream = station(0, 0)
const institution = livestream.institution.id
const path = `/livestreams/${livestream.id}/stream`

t.test('a stream is served to whoever asks for it in an odd way, once for each connection', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true' })
  const { publish } = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  await publish(playing(livestream, { title: 'state' }))
  const ask = async (text: string) => {
    const socket = await open(t, hub)
    socket.send(text)
    return socket
  }
  const plain = `GET ${path} HTTP/1.1\r\nhost: localhost\r\n`
  const readers = await Promise.all([
    ask(`GET ${path} HTTP/1.0\r\n\r\n`),
    ask(`${plain}\r\n${plain}\r\nGET /now HTTP/1.1\r\nhost: localhost\r\n\r\n`),
    ask(`${plain}content-length: 5\r\n\r\nhello`),
    ask(`${plain}content-length: 400\r\n\r\nhello`),
    ask(`${plain}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n`),
    ask(`${plain}last-event-id: 0\r\nlast-event-id: 1\r\n\r\n`),
    ask(`${plain}last-event-id: \x01\xff\r\n\r\n`.replace('\x01', '\t')),
    ask(`${plain}last-event-id: ${'9'.repeat(8_000)}\r\n\r\n`),
    ask(`${plain}range: bytes=0-1\r\nif-none-match: *\r\naccept: text/html\r\naccept-encoding: gzip\r\n\r\n`),
  ])
  for (const reader of readers) await reader.until('event: ready')
  await publish(playing(livestream, { title: 'live' }))
  for (const reader of readers) await reader.until('"live"')
  for (const { text } of readers) {
    t.equal(text().match(/HTTP\/1.1 200/g)?.length, 1)
    t.equal(text().match(/"live"/g)?.length, 1)
    t.equal(text().match(/"state"/g)?.length, 1)
  }
  for (const reader of readers) reader.close()
  await hub.until(async () => (await streamsOf(hub)) === 0)
})

t.test('a stream ends when its reader sends the end of its bytes', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true' })
  const reader = await open(t, hub)
  reader.send(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
  await reader.until('event: ready')
  t.equal(await streamsOf(hub), 1)
  reader.end()
  await hub.until(async () => (await streamsOf(hub)) === 0)
})

t.test('what is no request for a stream gets none', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true' })
  const api = await openApi(t, hub)
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
    for (const each of [path, '/stream', '/now', `/livestreams/${livestream.id}/now`])
      t.equal((await api.raw(method, each)).status, 404, `${method} ${each}`)
  }
  for (const query of ['delay=-1', 'delay=301', 'delay=1.5', 'delay=1&delay=2', 'delay=', 'after=1', 'x=1']) {
    const { status, text } = await api.raw('GET', `${path}?${query}`)
    t.equal(status, 400, `${query} ${text}`)
  }
  const many = Array.from({ length: 201 }, (_, nth) => `livestream=${nth}`).join('&')
  t.equal((await api.raw('GET', `/stream?${many}`)).status, 400)
  t.equal((await api.raw('GET', '/stream?livestream=')).status, 404)
  t.equal((await api.raw('GET', '/livestreams/%00/stream')).status, 404)
  t.equal(await streamsOf(hub), 0)
})

t.test('a reader that leaves at once leaves nothing behind', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true' })
  for (let nth = 0; nth < 50; nth++) {
    const reader = await open(t, hub)
    reader.send(`GET /stream?delay=${nth % 5} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
    if (nth % 2 === 0) await reader.until('retry')
    reader.close()
  }
  await hub.until(async () => (await streamsOf(hub)) === 0)
})

async function open(t: Test, hub: TestHub) {
  const socket = connect({ host: 'localhost', port: hub.httpsPort, ca: readFileSync(hub.caPath) })
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  let text = ''
  let wake = () => {}
  socket.on('data', (piece: Buffer) => {
    text += piece
    wake()
  })
  await once(socket, 'secureConnect')
  return {
    text: () => text,
    send: (bytes: string) => void socket.write(bytes, 'latin1'),
    end: () => void socket.end(),
    close: () => void socket.destroy(),
    async until(part: string): Promise<void> {
      while (!text.includes(part)) await new Promise<void>((resolve) => (wake = resolve))
    },
  }
}

async function streamsOf(hub: TestHub): Promise<number> {
  const { counters } = await hub.ask<{ counters: Record<string, number> }>('status')
  return counters.hub_streams ?? 0
}
