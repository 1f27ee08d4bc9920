import { Duplex } from 'node:stream'

/** A connection in memory. Bytes arrive at the other end in a later turn. */
export function createWire(): [Duplex, Duplex] {
  const ends: [Duplex, Duplex] = [createEnd(() => ends[1]), createEnd(() => ends[0])]
  return ends
}

function createEnd(other: () => Duplex): Duplex {
  const hand = (chunk: Buffer | null, done: () => void) =>
    setImmediate(() => {
      if (!other().destroyed) other().push(chunk)
      done()
    })
  return new Duplex({
    allowHalfOpen: true,
    read: () => undefined,
    write: (chunk, _encoding, done) => void hand(chunk, done),
    writev: (chunks, done) => void hand(Buffer.concat(chunks.map(({ chunk }) => chunk)), done),
    final: (done) => void hand(null, done),
    // Like a TCP reset: bytes on their way are lost.
    destroy(error, done) {
      setImmediate(() => other().destroy())
      done(error)
    },
  })
}
