import type { OnReadOpts } from 'node:net'
import { type ConnectionOptions, connect } from 'node:tls'
import { connectPacket, createPacketCutter, type Login, type OnPacket } from './packets.ts'

/** Where a measured system listens. */
export interface Address {
  port: number
  /** CA certificate, PEM. */
  ca: string
  /** The address that clients connect from, such as `127.0.0.2`: each has ports of its own. */
  from?: string
}

export type LightClient = Awaited<ReturnType<typeof openLightClient>>

/** One read buffer for all clients: no client needs the bytes after its callback. */
const shared = Buffer.alloc(64 * 1024)

/**
 * Opens an MQTT client that costs little more than its TLS socket. Resolves at the CONNACK, and rejects if the
 * connection ends before.
 */
export async function openLightClient(of: {
  address: Address
  clientId: string
  clean: boolean
  login: Login | undefined
  /** The TLS session of an earlier connection, to resume. */
  tlsSession?: Buffer | undefined
  onPacket: OnPacket
}) {
  let isIn = () => {}
  const cut = createPacketCutter((bytes, start, body, end) => {
    if (bytes[start] === 0x20) isIn()
    else of.onPacket(bytes, start, body, end)
  })
  let tlsSession: Buffer | undefined
  // `tls.connect` supports `onread`, but its types lack it.
  const options: ConnectionOptions & { onread: OnReadOpts } = {
    host: '127.0.0.1',
    servername: 'localhost',
    port: of.address.port,
    ...(of.address.from && { localAddress: of.address.from }),
    ca: of.address.ca,
    ...(of.tlsSession && { session: of.tlsSession }),
    onread: {
      buffer: shared,
      callback: (length) => {
        cut(shared, length)
        return true
      },
    },
  }
  const socket = connect(options)
  socket.setNoDelay(true)
  socket.on('session', (session) => {
    tlsSession = session
  })
  await new Promise<void>((resolve, reject) => {
    isIn = resolve
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('closed before the log-in')))
    socket.once('secureConnect', () => socket.write(connectPacket(of.clientId, of.clean, of.login)))
  })
  socket.on('error', () => {})
  return {
    socket,
    get tlsSession() {
      return tlsSession
    },
    resumed: socket.isSessionReused(),
  }
}

/** Calls `work` for each index below `count`. At most `concurrency` calls run at the same time. */
export async function paced<Result>(
  count: number,
  concurrency: number,
  work: (index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  let next = 0
  const workers = Array.from({ length: Math.min(concurrency, count) }, async () => {
    while (next < count) {
      const index = next++
      results[index] = await work(index)
    }
  })
  await Promise.all(workers)
  return results
}
