import { once } from 'node:events'
import type { Socket } from 'node:net'

/** Longest header that the node waits for, bytes: enough for version 2 with extensions. */
const maxHeaderBytes = 1024
/** Longest wait for the header, milliseconds: the load balancer sends it at once. */
const headerTimeoutMs = 5_000

/**
 * Reads the PROXY protocol header (version 1 or 2) at the start of a connection, and leaves later bytes on the socket.
 * Resolves with the client's address. Undefined: the header names none, as in a load balancer's health checks. Rejects
 * if no header comes.
 */
export async function readProxyHeader(socket: Socket): Promise<string | undefined> {
  const timeout = AbortSignal.timeout(headerTimeoutMs)
  let received = Buffer.alloc(0)
  for (;;) {
    const chunk: Buffer | null = socket.read()
    if (chunk === null) {
      if (socket.destroyed || socket.readableEnded) throw new Error('closed before the PROXY header')
      await once(socket, 'readable', { signal: timeout })
      continue
    }
    received = Buffer.concat([received, chunk])
    const header = parseProxyHeader(received)
    if (header === 'incomplete' && received.length < maxHeaderBytes) continue
    if (typeof header === 'string') throw new Error('no PROXY header')
    const rest = received.subarray(header.length)
    if (rest.length > 0) socket.unshift(rest)
    return header.address
  }
}

/** Parses the header at the start of `bytes`. Returns its length in bytes, and the client's address. */
export function parseProxyHeader(
  bytes: Buffer,
): { length: number; address: string | undefined } | 'incomplete' | 'invalid' {
  const compared = Math.min(bytes.length, signature.length)
  if (bytes.subarray(0, compared).equals(signature.subarray(0, compared))) return parseVersion2(bytes)
  return parseVersion1(bytes)
}

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const version1Name = 'PROXY '
/** Longest header of version 1, bytes. */
const maxLineBytes = 107

function parseVersion1(bytes: Buffer): ReturnType<typeof parseProxyHeader> {
  const text = bytes.toString('latin1', 0, maxLineBytes)
  if (!text.startsWith(version1Name.slice(0, text.length))) return 'invalid'
  const end = text.indexOf('\r\n')
  if (end < 0) return bytes.length < maxLineBytes ? 'incomplete' : 'invalid'
  const [, family, source] = text.slice(0, end).split(' ')
  if (family === 'UNKNOWN') return { length: end + 2, address: undefined }
  if ((family !== 'TCP4' && family !== 'TCP6') || !source) return 'invalid'
  return { length: end + 2, address: source }
}

function parseVersion2(bytes: Buffer): ReturnType<typeof parseProxyHeader> {
  if (bytes.length < 16) return 'incomplete'
  const versionAndCommand = bytes.readUInt8(12)
  const family = bytes.readUInt8(13)
  const length = 16 + bytes.readUInt16BE(14)
  if (versionAndCommand >> 4 !== 2) return 'invalid'
  if (bytes.length < length) return 'incomplete'
  if ((versionAndCommand & 15) === 0) return { length, address: undefined } // LOCAL: the load balancer's own check
  if (family === 0x11 && length >= 28) return { length, address: [...bytes.subarray(16, 20)].join('.') }
  if (family === 0x21 && length >= 52) return { length, address: ipv6(bytes.subarray(16, 32)) }
  return { length, address: undefined }
}

function ipv6(bytes: Buffer): string {
  return Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(index * 2).toString(16)).join(':')
}
