import t from 'tap'
import { lookAtHello } from '../../listener/client-hello.ts'
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

/** The same message in so many records of some bytes, and one with what is left. */
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
