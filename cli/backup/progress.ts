import { Transform } from 'node:stream'
import { sizeText } from '../print.ts'

const everyMs = 1_000

/** A stream that passes all bytes on, and counts them on a terminal. */
export function progress(done: string): Transform {
  let bytes = 0
  let isSaid = false
  const say = () => {
    isSaid = true
    process.stderr.write(`\r${done} ${sizeText(bytes)} `)
  }
  const timer = process.stderr.isTTY ? setInterval(say, everyMs) : undefined
  return new Transform({
    transform(chunk: Buffer, _encoding, taken) {
      bytes += chunk.length
      taken(null, chunk)
    },
    destroy(error, closed) {
      clearInterval(timer)
      if (isSaid) process.stderr.write('\r\u001b[K')
      closed(error)
    },
  })
}
