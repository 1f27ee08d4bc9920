import { once } from 'node:events'
import type { OnReadOpts } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { answer } from '../answer.ts'
import { type Address, paced } from './light-client.ts'
import { createReceipts } from './receipts.ts'

/* A load generator: a process with readers over HTTPS, of streams and of what is on air now. */

/** Streams that open at the same time. */
const concurrency = 16
const stampKey = Buffer.from('"playlistItemId":"at')
const ready = Buffer.from('event: ready\n')
const headEnd = Buffer.from('\r\n\r\n')

const streams: TLSSocket[] = []
/** One read buffer for all streams. */
const shared = Buffer.alloc(64 * 1024)
const receipts = createReceipts()

export const commands = {
  /** Opens `count` more streams. Resolves when all are ready. */
  async open(of: { address: Address; token: string; path: string; count: number }): Promise<void> {
    await paced(of.count, concurrency, async () => {
      streams.push(await openStream(of))
    })
  },

  async close(_: object): Promise<void> {
    await Promise.all(
      streams
        .splice(0)
        .map((socket) => socket.destroyed || new Promise((done) => socket.once('close', done).destroy())),
    )
  },

  begin: receipts.begin,
  finish: receipts.finish,

  /** Asks `count` times, over so many kept connections. Returns the time for all, and how many answers had no 200 or 304. */
  async ask(of: Asking): Promise<{ ms: number; failed: number }> {
    let [left, failed] = [of.count, 0]
    const request = requestOf(of)
    const begun = performance.now()
    await Promise.all(
      Array.from({ length: of.connections }, async () => {
        const socket = connect({ ...tlsOf(of.address), ALPNProtocols: ['http/1.1'] })
        socket.setNoDelay(true)
        await once(socket, 'secureConnect')
        const bytes: Buffer[] = []
        let arrived = () => {}
        socket.on('data', (piece: Buffer) => {
          bytes.push(piece)
          arrived()
        })
        while (left-- > 0) {
          bytes.length = 0
          socket.write(request)
          let status: number | undefined
          while (status === undefined) {
            await new Promise<void>((resolve) => {
              arrived = resolve
            })
            status = statusOfWhole(Buffer.concat(bytes))
          }
          if (status !== 200 && status !== 304) failed++
        }
        socket.destroy()
      }),
    )
    return { ms: performance.now() - begun, failed }
  },
}

answer(commands)

interface Asking {
  address: Address
  token: string
  path: string
  count: number
  connections: number
  /** A further header, such as If-None-Match. */
  header?: string
}

/** The status of an answer that has come as a whole. */
function statusOfWhole(bytes: Buffer): number | undefined {
  const end = bytes.indexOf(headEnd)
  if (end < 0) return undefined
  const head = bytes.toString('latin1', 0, end)
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
  return bytes.length >= end + headEnd.length + length ? Number(head.split(' ', 2)[1]) : undefined
}

function openStream(of: { address: Address; token: string; path: string }): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const options: ConnectionOptions & { onread: OnReadOpts } = {
      ...tlsOf(of.address),
      onread: {
        buffer: shared,
        callback: (length) => {
          if (shared.subarray(0, length).includes(ready)) resolve(socket)
          count(length)
          return true
        },
      },
    }
    const socket = connect(options)
    socket.setNoDelay(true)
    socket.on('error', reject)
    socket.once('close', () => reject(new Error('closed before it was ready')))
    socket.once('secureConnect', () => socket.write(requestOf(of)))
  })
}

function requestOf({ token, path, header }: { token: string; path: string; header?: string }): string {
  const lines = [`GET ${path} HTTP/1.1`, 'Host: localhost', `Authorization: Bearer ${token}`, header]
  return `${lines.filter((line) => line !== undefined).join('\r\n')}\r\n\r\n`
}

function tlsOf({ port, ca }: Address): ConnectionOptions {
  return { host: '127.0.0.1', servername: 'localhost', port, ca }
}

/** An event is small, so that a read seldom has a part of one. */
function count(length: number): void {
  for (let at = shared.indexOf(stampKey); at >= 0 && at < length; at = shared.indexOf(stampKey, at + 1)) {
    receipts.count(shared, at, length)
  }
}
