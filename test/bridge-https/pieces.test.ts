import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { inPieces } from '../../bridge-https/pieces.ts'

t.test('bytes come whole, whatever their number', async (t) => {
  for (const length of [0, 1, 32 * 1024, 32 * 1024 + 1, 1_000_000]) {
    const bytes = randomBytes(length)
    t.ok(bytes.equals(await buffer(inPieces(bytes))), `${length} bytes`)
  }
})

t.test('who does not read is given one piece', async (t) => {
  const reader = new Writable({ highWaterMark: 1, write: () => {} })
  const source = inPieces(Buffer.alloc(10_000_000))
  const paused = once(source, 'pause')
  source.pipe(reader)
  await paused
  t.equal(reader.writableLength, 32 * 1024)
  source.destroy()
})
