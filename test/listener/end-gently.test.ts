import { once } from 'node:events'
import { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { endGently } from '../../listener/end-gently.ts'

/** A socket whose peer reads, and sends what the test pushes. */
function open() {
  const written: Buffer[] = []
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk)
      done()
    },
  })
  return { socket, written: () => Buffer.concat(written).toString() }
}

t.test('the peer gets the last bytes, and may send on for a moment', async (t) => {
  const { socket, written } = open()
  socket.write('last')
  endGently(socket)
  await once(socket, 'finish')
  t.equal(written(), 'last')
  socket.push(Buffer.alloc(64 * 1024))
  await nextTurn()
  t.notOk(socket.destroyed)
  socket.push(null)
  await once(socket, 'close')
})

t.test('a peer that sends much, or many pieces, is not read any more', async (t) => {
  for (const pieces of [[64 * 1024, 1], Array<number>(129).fill(1)]) {
    const { socket } = open()
    endGently(socket)
    for (const [nth, bytes] of pieces.entries()) {
      t.notOk(socket.destroyed, `before piece ${nth}`)
      socket.push(Buffer.alloc(bytes))
      await nextTurn()
    }
    t.ok(socket.destroyed)
  }
})

t.test('a peer that neither reads nor ends is closed', async () => {
  const socket = new Duplex({ read() {}, write() {} })
  socket.write('never read')
  endGently(socket)
  // The time keeps no process alive.
  const alive = setInterval(() => undefined, 1_000)
  await once(socket, 'close')
  clearInterval(alive)
})
