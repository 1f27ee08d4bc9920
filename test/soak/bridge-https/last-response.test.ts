import { readFileSync } from 'node:fs'
import { connect } from 'node:tls'
import { queryObjects } from 'node:v8'
import t, { type Test } from 'tap'
import { HubRequest } from '../../../bridge-https/request.ts'
import type { Route } from '../../../bridge-https/routes/route.ts'
import { openClient } from '../../bridge-https/api.ts'
import { exchange, secured } from '../../bridge-https/raw.ts'
import { startRoutes } from '../../bridge-https/start-routes.ts'
import { words } from '../../words.ts'

const textBytes = 8 * 1024 * 1024
const long = Buffer.alloc(textBytes, 'x')
const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`

t.test('a stream keeps nothing of its request', async (t) => {
  const { open } = await start(t)
  const count = 20
  for (let nth = 0; nth < count; nth++) await (await open(get('/stream'))).until('begun')
  // Node may still hold the last one.
  t.ok(queryObjects(HubRequest, { format: 'count' }) < count / 2)
})

t.test('a stream begins behind the answers to the requests before', async (t) => {
  const { open } = await start(t)
  const reader = await open(get('/text') + get('/short') + get('/stream') + get('/short'))
  await reader.until('begun')
  const answers = reader.text().split('HTTP/1.1 ').slice(1)
  t.equal(answers.length, 3)
  t.ok((answers[0]?.length ?? 0) > textBytes)
  t.match(answers[1], /\r\n\r\nshort$/)
  t.match(answers[2], /^200 .*connection: close.*\r\n\r\nbegun$/is)
})

t.test('however its path is spelled, a stream is the last answer of its connection', async (t) => {
  const { open } = await start(t)
  const paths = words(`/stream?x=1 /%73tream /streams/a%2Fb /streams/%3F /streams/ /stream?x=%ff /stream#a`)
  for (const path of paths) {
    const reader = await open(get(path) + get('/short'))
    await reader.until(/begun|short/)
    t.match(reader.text(), /begun$|404 Not Found.*\r\n\r\nshort$/s, path)
  }
})

t.test('who is refused a stream loses the connection behind the answer', async (t) => {
  const hub = await start(t)
  t.match(await exchange(t, hub, get('/streams/refused') + get('/short')), /^HTTP\/1.1 404 (?!.*short)/s)
})

t.test('what a reader sends is dropped, and much of it ends the stream', async (t) => {
  const { open, ended } = await start(t)
  const reader = await open(get('/stream'))
  await reader.until('begun')
  for (let nth = 0; nth < 20; nth++) reader.send(get('/short'))
  reader.send('x'.repeat(100_000))
  await reader.closed
  await ended
  t.notMatch(reader.text(), 'short')
})

t.test('a stream that ends, and that nobody reads, does not keep its connection', async (t) => {
  const { open, ended } = await start(t, { stalledMs: 1_000 })
  const reader = await open(get('/streams/long'))
  reader.pause()
  await ended
  t.pass()
})

t.test('HEAD has the head of a stream alone', async (t) => {
  const hub = await start(t)
  const answer = await openClient(t, hub)('HEAD', '/stream')
  t.match(answer, { status: 200, text: '' })
})

async function start(t: Test, limits: { stalledMs?: number } = {}) {
  let end = () => {}
  const ended = new Promise<void>((resolve) => (end = resolve))
  const base = { method: 'GET', tag: 'Operation', summary: '', answers: {} } as const
  const begin = { status: 200, body: undefined, headers: { 'content-type': 'text/plain' } }
  const routes: Route[] = [
    { ...base, path: '/text', id: 'text', handle: () => ({ status: 200, body: long }) },
    { ...base, path: '/short', id: 'short', handle: () => ({ status: 200, body: 'short' }) },
    {
      ...base,
      path: '/stream',
      id: 'stream',
      isStream: true,
      handle: () => ({ ...begin, stream: (socket) => void socket.on('close', end).write('begun') }),
    },
    {
      ...base,
      path: '/streams/{id}',
      id: 'other',
      isStream: true,
      handle: ({ params: { id } }) =>
        id === 'refused'
          ? { status: 404, body: 'no stream' }
          : {
              ...begin,
              stream(socket) {
                socket.on('close', end).write(id === 'long' ? long : 'begun')
                if (id === 'long') socket.destroySoon()
              },
            },
    },
  ]
  const hub = await startRoutes(t, { routes, ...limits })
  return {
    ...hub,
    ended,
    async open(text: string) {
      const options = { host: 'localhost', port: hub.httpsPort, ca: readFileSync(hub.caPath) }
      const socket = await secured(connect(options))
      t.teardown(() => socket.destroy())
      socket.on('error', () => undefined)
      let received = ''
      let wake = () => {}
      socket.on('data', (piece: Buffer) => {
        received += piece
        wake()
      })
      socket.write(text)
      return {
        text: () => received,
        closed: new Promise((resolve) => socket.once('close', resolve)),
        send: (bytes: string) => void socket.write(bytes),
        pause: () => void socket.pause(),
        async until(part: string | RegExp): Promise<void> {
          while (received.search(part) < 0) await new Promise<void>((resolve) => (wake = resolve))
        },
      }
    },
  }
}
