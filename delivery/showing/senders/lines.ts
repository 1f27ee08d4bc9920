import { connect } from 'node:net'
import type { TcpLines } from '../../outputs/output.ts'
import { guardedLookup } from '../../webhook/connection-guard.ts'

/** The other side has this time to close, milliseconds. Encoders often keep the connection. */
const closeMs = 1_000

/**
 * Sends bytes over a connection of their own. Rejects when there is no connection, or it breaks before all bytes are
 * out, and with the reason of `signal` when it aborts. What the other side sends is dropped.
 */
export function sendOverTcp({ host, port, bytes }: TcpLines, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, lookup: guardedLookup({ allowPrivate: true }) })
    signal.addEventListener('abort', () => end(signal.reason), { once: true })
    let closing: NodeJS.Timeout | undefined
    let isOut = false
    socket.on('error', (error) => end(error))
    socket.on('data', () => {
      // A flood must not be read on while the hub waits for the end.
      if (isOut) end()
    })
    socket.on('close', () => end(isOut ? undefined : new Error('the connection was closed')))
    socket.end(bytes, () => {
      isOut = true
      closing = setTimeout(() => end(), closeMs)
    })

    function end(error?: Error): void {
      clearTimeout(closing)
      if (error) reject(error)
      else resolve()
      socket.destroy()
    }
  })
}
