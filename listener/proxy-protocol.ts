import { once } from 'node:events'
import { isIPv4, isIPv6, type Socket } from 'node:net'

/**
 * Longest header that the node takes, bytes, with all extensions (TLVs) of version 2. Whether it arrives at once or in
 * pieces makes no difference.
 */
const maxHeaderBytes = 4096
/** Longest wait for the header, milliseconds: the load balancer sends it at once. */
const headerTimeoutMs = 5_000

/** A header at the start of a connection. `incomplete`: it has not arrived wholly. `problem`: it is none, or a bad one. */
type ProxyHeader =
  | {
      /** Bytes. */ length: number /** Undefined: the header names no client. */
      address: string | undefined
    }
  | { problem: string }
  | 'incomplete'

/**
 * Reads the PROXY protocol header (version 1 or 2) at the start of a connection, and leaves later bytes on the socket.
 * Resolves with the client's address. Undefined: the header names none, as in a load balancer's health checks. Rejects
 * if no header comes, or a bad one.
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
    if (header === 'incomplete') continue
    if ('problem' in header) throw new Error(header.problem)
    const rest = received.subarray(header.length)
    if (rest.length > 0) socket.unshift(rest)
    return header.address
  }
}

/** Parses the header at the start of `bytes`. Never answers `incomplete` to `maxHeaderBytes` or more. */
export function parseProxyHeader(bytes: Buffer): ProxyHeader {
  const compared = Math.min(bytes.length, signature.length)
  if (bytes.subarray(0, compared).equals(signature.subarray(0, compared))) return parseVersion2(bytes)
  return parseVersion1(bytes)
}

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const version1Name = 'PROXY '
/** Longest header of version 1, bytes. */
const maxLineBytes = 107
const isAddress: Record<string, (text: string) => boolean> = { TCP4: isIPv4, TCP6: isIPv6 }

function parseVersion1(bytes: Buffer): ProxyHeader {
  const text = bytes.toString('latin1', 0, maxLineBytes)
  if (!text.startsWith(version1Name.slice(0, text.length))) return { problem: 'no PROXY header' }
  const end = text.indexOf('\r\n')
  if (end < 0) {
    if (text.length < maxLineBytes) return 'incomplete'
    return { problem: `PROXY header: expected a line end within ${maxLineBytes} bytes` }
  }
  const [, family = '', source = '', target = '', ...ports] = text.slice(0, end).split(' ')
  // The receiver must ignore what follows UNKNOWN.
  if (family === 'UNKNOWN') return { length: end + 2, address: undefined }
  if (!Object.hasOwn(isAddress, family))
    return { problem: 'PROXY header: expected the family TCP4, TCP6 or UNKNOWN' }
  if (![source, target].every((address) => isAddress[family]?.(address) && !address.includes('%'))) {
    return { problem: `PROXY header: expected two addresses of the family ${family}` }
  }
  if (ports.length !== 2 || !ports.every(isPort)) {
    return { problem: 'PROXY header: expected two ports from 0 to 65535' }
  }
  return { length: end + 2, address: source }
}

function isPort(text: string): boolean {
  return /^(0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535
}

/** Bytes before the addresses, in version 2. */
const fixedBytes = 16
const unspecified = 0x00

/** The families of version 2 that a TCP port can have, by their byte. `bytes`: two addresses and two ports. */
const families: Record<number, { bytes: number; source: (bytes: Buffer) => string }> = {
  17: { bytes: 12, source: (bytes) => [...bytes.subarray(0, 4)].join('.') },
  33: { bytes: 36, source: (bytes) => ipv6(bytes.subarray(0, 16)) },
}

function parseVersion2(bytes: Buffer): ProxyHeader {
  if (bytes.length < fixedBytes) return 'incomplete'
  const version = bytes.readUInt8(12) >> 4
  const command = bytes.readUInt8(12) & 15
  const family = bytes.readUInt8(13)
  const length = fixedBytes + bytes.readUInt16BE(14)
  if (version !== 2) return { problem: `PROXY header: expected version 2, not ${version}` }
  if (command > 1) return { problem: `PROXY header: expected the command LOCAL or PROXY, not ${command}` }
  if (length > maxHeaderBytes)
    return { problem: `PROXY header: expected at most ${maxHeaderBytes} bytes, not ${length}` }
  // LOCAL is a health check of the load balancer: the receiver must ignore its family and addresses.
  const isLocal = command === 0
  const known = families[family]
  if (!isLocal && !known && family !== unspecified)
    return { problem: `PROXY header: expected TCP over IPv4 or IPv6, not family ${family}` }
  if (!isLocal && known && length < fixedBytes + known.bytes)
    return { problem: `PROXY header: expected ${known.bytes} bytes of addresses, not ${length - fixedBytes}` }
  if (bytes.length < length) return 'incomplete'
  return { length, address: isLocal ? undefined : known?.source(bytes.subarray(fixedBytes)) }
}

function ipv6(bytes: Buffer): string {
  return Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(index * 2).toString(16)).join(':')
}
