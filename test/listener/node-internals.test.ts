import { EventEmitter, once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Duplex } from 'node:stream'
import { connect, createServer as createTlsServer, type Server, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { ensureDevelopmentCertificates } from '../../certs/development.ts'
import { interceptPauses, replacePush, takeListeners } from '../../listener/node-internals.ts'

/** Both ends of a TLS connection to a server. */
async function open(t: Test, make: (files: { cert: Buffer; key: Buffer }) => Server) {
  const { cert, key, ca } = await ensureDevelopmentCertificates(t.testdir())
  const server = make({ cert: readFileSync(cert), key: readFileSync(key) }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: readFileSync(ca) })
  const [socket]: TLSSocket[] = await once(server, 'secureConnection')
  t.teardown(() => {
    client.destroy()
    server.close()
  })
  if (!socket) throw new Error('no connection')
  return { client, socket }
}

t.test('Node hands what it reads to the place where it is looked at first', async (t) => {
  const { client, socket } = await open(t, createTlsServer)
  const seen: string[] = []
  let look = () => {}
  replacePush(socket, (push) => (chunk) => {
    if (!chunk) return push(chunk)
    seen.push(chunk.toString())
    look()
    const taken = chunk.indexOf('.') + 1
    return taken === chunk.length || push(chunk.subarray(taken))
  })
  const passed: string[] = []
  socket.on('data', (chunk: Buffer) => passed.push(chunk.toString()))
  const looked = new Promise<void>((resolve) => {
    look = resolve
  })
  client.write('taken.')
  await looked
  client.write('taken.rest')
  await once(socket, 'data')
  t.strictSame([seen, passed], [['taken.', 'taken.rest'], ['rest']])
})

t.test('with a Node that reads in another way, everything comes through the stream', async (t) => {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  replacePush(socket, () => () => {
    throw new Error('not asked')
  })
  Duplex.prototype.push.call(socket, Buffer.from('all of it'))
  const [chunk] = await once(socket, 'data')
  t.equal(String(chunk), 'all of it')
})

t.test('Node has the listeners that are taken from it', async (t) => {
  t.type(takeListeners(createTlsServer(), 'connection'), 'function')
  t.type(
    takeListeners(
      createHttpsServer(() => {}),
      'request',
    ),
    'function',
  )
  const { socket } = await open(t, (files) => createHttpsServer(files))
  t.type(takeListeners(socket, 'data'), 'function')
})

t.test('listeners that are taken hear what they are told, and nothing else', async (t) => {
  const emitter = new EventEmitter()
  const heard: unknown[] = []
  emitter.on('event', function (this: unknown, ...args) {
    heard.push(this === emitter, ...args)
  })
  const tell = takeListeners<[number, number]>(emitter, 'event')
  emitter.emit('event', 1, 2)
  tell?.(3, 4)
  t.strictSame(heard, [true, 3, 4])
  t.equal(takeListeners(emitter, 'event'), undefined, 'there is nothing to be taken any more')
})

t.test('whoever pauses or resumes a socket is heard before, until the end', async (t) => {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  const asked: string[] = []
  const own = interceptPauses(socket, {
    pause: () => asked.push('pause'),
    resume: () => asked.push('resume'),
  })
  t.equal(socket.pause().resume(), socket)
  t.strictSame([asked, socket.isPaused()], [['pause', 'resume'], false])
  own.pause()
  t.equal(socket.isPaused(), true)
  own.resume()
  t.equal(socket.isPaused(), false)
  own.end()
  socket.pause()
  t.strictSame([asked, socket.isPaused()], [['pause', 'resume'], true])
})
