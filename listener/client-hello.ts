import type { Socket } from 'node:net'

/** Longest ClientHello that the node waits for, in bytes and in TLS records. Usually it has 2 kB in one record. */
const maxBytes = 16 * 1024
const maxRecords = 16

/**
 * Resolves when the connection is closed, or the whole ClientHello has arrived and is back on the socket. Also resolves
 * for bytes that are not TLS: the handshake then gives the reason. Rejects after `timeoutMs`, or if the node refuses
 * the bytes (`lookAtHello`).
 */
export function clientHelloArrived(socket: Socket, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let received: Buffer = Buffer.alloc(0)
    const timer = setTimeout(
      () => end(failure('ERR_TLS_HANDSHAKE_TIMEOUT', 'no ClientHello in time')),
      timeoutMs,
    )
    const closed = () => end()
    socket.on('readable', look)
    socket.once('close', closed)
    look()

    function look(): void {
      const chunk: Buffer | null = socket.read()
      if (chunk === null) {
        if (socket.destroyed) end()
        return
      }
      received = Buffer.concat([received, chunk])
      const seen = lookAtHello(received)
      if (seen === 'incomplete') return
      socket.unshift(received)
      end(seen instanceof Error ? seen : undefined)
    }

    function end(error?: Error): void {
      clearTimeout(timer)
      socket.off('readable', look)
      socket.off('close', closed)
      if (error) reject(error)
      else resolve()
    }
  })
}

/**
 * Says how much of a ClientHello has arrived, in one or more TLS records. `whole`: all of it. `other`: OpenSSL refuses
 * the bytes at once. Error: the node itself refuses the bytes, because OpenSSL would accept them or wait for more.
 */
export function lookAtHello(bytes: Buffer): 'whole' | 'incomplete' | 'other' | Error {
  const [first = recordType.handshake, , third] = bytes
  if ((first & 0x80) !== 0) return third === undefined ? 'incomplete' : sslVersion2(third)
  if (first < recordType.least || first > recordType.most) return 'other'
  let message: Buffer = Buffer.alloc(0)
  let at = 0
  for (let record = 0; record < maxRecords && at < maxBytes; record++) {
    if (bytes.length < at + headerBytes) return 'incomplete'
    const length = bytes.readUInt16BE(at + 3)
    if (bytes[at + 1] !== majorVersion) return 'other'
    if (bytes[at] !== recordType.handshake) return failure('', 'the first TLS message is no ClientHello')
    const end = at + headerBytes + length
    message = Buffer.concat([message, bytes.subarray(at + headerBytes, end)])
    if (message.length >= 4 && message.length >= 4 + message.readUIntBE(1, 3)) return 'whole'
    if (bytes.length < end) return 'incomplete'
    at = end
  }
  return failure(
    '',
    `the ClientHello is longer than ${maxBytes} bytes, or in more than ${maxRecords} records`,
  )
}

/**
 * The first byte of a TLS record is its type (RFC 8446 §5.1). OpenSSL refuses types below `least` or above `most` at
 * once.
 */
const recordType = { least: 20, handshake: 22, most: 24 }
const headerBytes = 5
/** Records of TLS 1.0 to 1.3 all name 3 as the major version (RFC 8446 §5.1). */
const majorVersion = 3

/** Refuses a ClientHello in the form of SSL 2.0: RFC 6176 forbids this form, but OpenSSL accepts it. */
function sslVersion2(messageType: number): 'other' | Error {
  return messageType === 1 ? failure('ERR_SSL_UNSUPPORTED_PROTOCOL', 'SSL 2.0') : 'other'
}

function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
