import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createTcpServer, type Server, Socket } from 'node:net'
import { Duplex, getDefaultHighWaterMark, setDefaultHighWaterMark } from 'node:stream'
import { mock } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import t, { type Test } from 'tap'
import { preparePublish } from '../../broker/connection/frames.ts'
import { ensureDevelopmentCertificates } from '../../certs/development.ts'
import { OutgoingBuffer } from '../../listener/outgoing-buffer.ts'

/*
 * For each client, `packet` writes the packet identifier into the same bytes. If the socket kept these bytes without
 * copying them, a client on a slow network could get the packet identifier of another client.
 */
const count = 4_000
const payload = Buffer.alloc(900, 'x')
const length = preparePublish({ topic: 'topic', payload }).packet(1, {}, 1).length
const idAt = length - payload.length - 2

const dropped = () => {}

/** Both ends of a connection. `reader` does not read yet. */
type Pair = { writer: Duplex; reader: Duplex }

for (const [name, open] of Object.entries<(t: Test) => Promise<Pair>>({ tls, tcp, stream })) {
  for (const pauseMs of [0, 50]) {
    t.test(`lent bytes arrive as they were lent: ${name}, read after ${pauseMs} ms`, async (t) => {
      const { writer, reader } = await open(t)
      const outgoing = new OutgoingBuffer(writer, 16 * 1024 * 1024, {
        slow: (detail) => t.fail(detail),
        dropped,
      })
      const publish = preparePublish({ topic: 'topic', payload })
      const arrived: number[] = []
      const all = readIds(reader, arrived)
      for (let id = 1; id <= count; id++) {
        if (!outgoing.accepts(length, 1)) t.fail(`no room for ${id}`)
        outgoing.write(publish.packet(1, {}, id), true)
        // Some packets must find an empty buffer, others must wait behind earlier ones.
        if (id % 500 === 0) await new Promise((resolve) => setImmediate(resolve))
        if (id === count / 2) setTimeout(() => reader.resume(), pauseMs)
      }
      await all
      t.same(
        arrived,
        Array.from({ length: count }, (_, index) => index + 1),
      )
    })
  }
}

/** The default of Node 22; Node 20 has 16 KiB. A stream that stays below emits no `drain`. */
const highWaterMark = 64 * 1024

for (const [name, open] of Object.entries<(t: Test) => Promise<Pair>>({ tls, tcp, stream })) {
  t.test(`messages that wait for room go on below the high-water mark: ${name}`, async (t) => {
    raiseHighWaterMark(t)
    const { writer, reader } = await open(t)
    const outgoing = new OutgoingBuffer(writer, 16 * 1024 * 1024, {
      slow: (detail) => t.fail(detail),
      dropped,
    })
    fill(outgoing, outgoing.paceBytes)
    t.ok(outgoing.pendingBytes < highWaterMark)
    let isOver = false
    const waiting = outgoing.paced().then(() => {
      isOver = true
    })
    await readAll(outgoing, reader)
    t.ok(isOver)
    outgoing.close()
    await waiting
  })

  t.test(`who reads below the high-water mark is not taken for stuck: ${name}`, async (t) => {
    raiseHighWaterMark(t)
    mock.timers.enable({ apis: ['setTimeout'] })
    t.teardown(() => mock.timers.reset())
    const stuck: string[] = []
    const slow = (detail: string) => void stuck.push(detail)
    const limitBytes = highWaterMark
    for (const reads of [true, false]) {
      const { writer, reader } = await open(t)
      const outgoing = new OutgoingBuffer(writer, limitBytes, { slow, dropped })
      fill(outgoing, limitBytes / 2)
      if (reads) await readAll(outgoing, reader)
      mock.timers.tick(10_000)
      t.same(stuck, reads ? [] : ['not read for 10000 ms'])
    }
  })
}

t.test('a small packet counts as what it costs', async (t) => {
  const { outgoing } = unread()
  let written = 0
  for (; outgoing.hasRoom(2); written++) outgoing.write(Buffer.of(0xd0, 0))
  t.equal(written, 97, 'each takes 64 bytes more')
})

t.test('who has gone takes anything, and a closed buffer lets go of who waits for it', async (t) => {
  const { writer, outgoing } = unread()
  outgoing.write(Buffer.alloc(limit))
  t.notOk(outgoing.hasRoom(1))
  const waiting = outgoing.paced()
  writer.destroy()
  t.ok(outgoing.hasRoom(1))
  outgoing.close()
  await waiting
})

const limit = 6_400

/** A buffer whose network takes no byte. */
function unread() {
  const writer = new Duplex({ read() {}, write() {} })
  return { writer, outgoing: new OutgoingBuffer(writer, limit, { slow: dropped, dropped }) }
}

function raiseHighWaterMark(t: Test): void {
  const before = getDefaultHighWaterMark(false)
  setDefaultHighWaterMark(false, highWaterMark)
  t.teardown(() => setDefaultHighWaterMark(false, before))
}

/** Writes packets until more than this many bytes wait for the reader. */
function fill(outgoing: OutgoingBuffer, bytes: number): void {
  const publish = preparePublish({ topic: 'topic', payload })
  while (outgoing.pendingBytes <= bytes) outgoing.write(publish.packet(1, {}, 1))
}

/** Resolves when the reader has all bytes, and the writer has noticed it. */
async function readAll(outgoing: OutgoingBuffer, reader: Duplex): Promise<void> {
  reader.resume()
  while (outgoing.pendingBytes > 0) await nextTurn()
  await nextTurn()
}

/** Collects packet identifiers, and resolves after `count` packets. The caller starts the reading. */
function readIds(reader: Duplex, arrived: number[]): Promise<void> {
  let rest = Buffer.alloc(0)
  return new Promise((resolve) => {
    reader.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      for (; rest.length >= length; rest = rest.subarray(length)) arrived.push(rest.readUInt16BE(idAt))
      if (arrived.length === count) resolve()
    })
    reader.pause()
  })
}

async function tls(t: Test): Promise<Pair> {
  const { cert, key, ca } = await ensureDevelopmentCertificates(t.testdir())
  const server = createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) })
  return pairOf(t, server, 'secureConnection', (port) => {
    const options = { port, host: '127.0.0.1', servername: 'localhost', ca: readFileSync(ca) }
    return connectTls(options)
  })
}

async function tcp(t: Test): Promise<Pair> {
  return pairOf(t, createTcpServer(), 'connection', (port) => new Socket().connect(port, '127.0.0.1'))
}

/** A stream whose bytes arrive in a later turn, as with a WebSocket. */
async function stream(): Promise<Pair> {
  const reader = new Duplex({ read() {}, write() {} })
  const writer = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      setImmediate(() => {
        reader.push(Buffer.from(chunk))
        done()
      })
    },
  })
  return { writer, reader }
}

async function pairOf(
  t: Test,
  server: Server,
  accepted: string,
  open: (port: number) => Socket,
): Promise<Pair> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  const reader = open(address.port)
  const [writer] = await once(server, accepted)
  t.teardown(() => {
    reader.destroy()
    writer.destroy()
    server.close()
  })
  return { writer, reader }
}
