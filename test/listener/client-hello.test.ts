import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { clientHelloArrived, lookAtHello } from '../../listener/client-hello.ts'
import { clientHello } from './client-hello.ts'

t.test('a ClientHello is whole with its last byte, in however many records it comes', async (t) => {
  const hello = await clientHello(t)
  for (const bytes of [hello, inPieces(hello, 10, 1), inPieces(hello, 15), inPieces(hello, 4, 50)]) {
    t.equal(lookAtHello(bytes), 'whole')
    t.equal(lookAtHello(Buffer.concat([bytes, Buffer.from('more')])), 'whole')
    for (let length = 0; length < bytes.length; length++) {
      t.equal(lookAtHello(bytes.subarray(0, length)), 'incomplete', `${length} of ${bytes.length} bytes`)
    }
  }
})

t.test('what is no TLS goes on to the handshake, which says so', async (t) => {
  for (const text of [
    'GET / HTTP/1.1\r\n\r\n',
    'x',
    '\x10\x0c\x00\x04MQTT',
    '\x16\x02\x00\x00\x01',
    '\xff\xff\x02',
  ]) {
    t.equal(lookAtHello(Buffer.from(text, 'latin1')), 'other', JSON.stringify(text))
  }
})

t.test('what would get round the waiting is refused', async (t) => {
  const hello = await clientHello(t)
  const table: [name: string, bytes: Buffer, reason: RegExp][] = [
    ['a warning first', Buffer.concat([Buffer.from('15030100020164', 'hex'), hello]), /is no ClientHello/],
    ['many records', inPieces(hello, 16), /more than 16 records/],
    [
      'empty records',
      Buffer.concat([Buffer.from('1603010000'.repeat(16), 'hex'), hello]),
      /more than 16 records/,
    ],
    [
      'a longer one',
      Buffer.concat([Buffer.from('16030140000100ffff', 'hex'), Buffer.alloc(16_384)]),
      /longer than 16384/,
    ],
    ['SSL 2.0', Buffer.from('802e0103010015', 'hex'), /SSL 2.0/],
  ]
  for (const [name, bytes, reason] of table) {
    const seen = lookAtHello(bytes)
    t.match(seen instanceof Error ? seen.message : seen, reason, name)
  }
})

t.test('it is waited for as long as there is time, however it drips, and left on the socket', async (t) => {
  const hello = await clientHello(t)
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const address = server.address()
  const accept = async () => {
    const client = connect(typeof address === 'object' && address ? address.port : 0, '127.0.0.1')
    client.on('error', () => {})
    const [socket]: Socket[] = await once(server, 'connection')
    if (!socket) throw new Error('no connection')
    t.teardown(() => client.destroy())
    t.teardown(() => socket.destroy())
    return { client, socket }
  }

  const whole = await accept()
  const arrived = clientHelloArrived(whole.socket, 60_000)
  whole.client.write(hello.subarray(0, 100))
  while (whole.socket.bytesRead < 100) await nextTurn()
  whole.client.write(hello.subarray(100))
  await arrived
  t.same(whole.socket.read(), hello)

  const dripping = await accept()
  let sent = 0
  const drip = setInterval(() => dripping.client.write(hello.subarray(sent, ++sent)), 10)
  await t.rejects(clientHelloArrived(dripping.socket, 100), { code: 'ERR_TLS_HANDSHAKE_TIMEOUT' })
  clearInterval(drip)

  const closed = await accept()
  closed.client.end(hello.subarray(0, 100))
  await clientHelloArrived(closed.socket, 60_000)
  t.ok(closed.socket.destroyed)
})

/** Cuts the ClientHello into `count` TLS records with `size` bytes each, and one record with the rest. */
function inPieces(hello: Buffer, count: number, size = 3): Buffer {
  const message = hello.subarray(5)
  const records = Array.from({ length: count }, (_, index) =>
    record(message.subarray(index * size, (index + 1) * size)),
  )
  return Buffer.concat([...records, record(message.subarray(count * size))])
}

function record(fragment: Buffer): Buffer {
  return Buffer.concat([Buffer.of(22, 3, 1, fragment.length >> 8, fragment.length & 255), fragment])
}
