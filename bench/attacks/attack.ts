import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import type { Livestream } from '../../validator/feed/feed.ts'
import type { Login } from '../load/packets.ts'

/** What the attacker knows: where the node listens, and ordinary credentials. */
export interface Target {
  mqttPort: number
  httpsPort: number
  /** CA certificate, PEM. */
  ca: string
  /** Paths of a server certificate that the node trusts, and of its key. */
  server: { cert: string; key: string }
  livestreams: readonly Livestream[]
  /** Free ports of this machine that the configuration of the node names. */
  ports: readonly number[]
  /** Path of the livestream feed that the node reads. */
  feedPath: string
  publisher: Login
  subscriber: Login
  /** Token of a user of the same institution, for HTTPS. */
  token: string
}

/** The strength of an attack. All attacks are bounded. */
export interface Force {
  seconds: number
  /** Connections open at the same time. */
  connections: number
  /** Number of addresses of this machine that the connections come from, beginning with 127.0.0.1. */
  addresses: number
  /**
   * Least number of pieces. If `seconds` is too short for them, the attack goes on. It lasts at most three times
   * `seconds`.
   */
  pieces?: number
}

/** Counts of an attack: its own sending, and the reactions of the node. */
export interface Seen {
  /** Bytes written to sockets, before encryption. */
  bytes: number
  /** Number of pieces: each attack counts its records, requests, events or sessions. */
  units: number
  opened: number
  /** Connections that ended, or timed out, before the TLS handshake was complete. */
  refused: number
  /** Connections that the node ended. */
  cut: number
  /** Number of answers of the node, by HTTP status or CONNACK code. */
  answers: Record<string, number>
}

/** Runs an attack to its end. Does not reject when the node refuses or cuts connections. */
export type Attack = (target: Target, force: Force) => Promise<Seen>

/** Maximum number of connections that one attack opens, however they end. */
const maxOpened = 20_000
/** Pause after a refused connection, milliseconds. Without a pause, a worker would get mostly refusals. */
const comeBackMs = 20
const connectMs = 10_000

export type Assault = ReturnType<typeof createAssault>

/** The tools of every attack: sockets from many addresses, for a bounded time. */
export function createAssault({ seconds, connections, addresses, pieces = 0 }: Force) {
  const seen: Seen = { bytes: 0, units: 0, opened: 0, refused: 0, cut: 0, answers: {} }
  const began = performance.now()
  const open = new Set<TLSSocket>()
  const sessions = new Map<number, Buffer>()
  const leftMs = () => {
    const lasts = seen.units < pieces ? seconds * 3 : seconds
    return Math.max(0, began + lasts * 1000 - performance.now())
  }

  return {
    seen,
    isOver: () => leftMs() <= 0,

    /** Lets `connections` workers call `strike` until the time is over. */
    async everywhere(strike: (worker: number) => Promise<void>): Promise<Seen> {
      const work = async (worker: number) => {
        while (leftMs() > 0 && seen.opened < maxOpened) await strike(worker)
      }
      await Promise.all(Array.from({ length: connections }, (_, worker) => work(worker)))
      for (const socket of open) socket.destroy()
      return seen
    },

    /** Opens a TLS connection for a worker. If the handshake fails, pauses and resolves with undefined. */
    async connect(port: number, worker: number): Promise<TLSSocket | undefined> {
      seen.opened++
      const session = sessions.get(port)
      // `tls.connect` passes `localAddress` on, but its types lack it.
      const options: ConnectionOptions & { localAddress: string } = {
        host: '127.0.0.1',
        port,
        servername: 'localhost',
        localAddress: `127.0.0.${1 + (worker % addresses)}`,
        // Checking the certificate would cost the attacker CPU time.
        rejectUnauthorized: false,
        ...(session && { session }),
      }
      const socket = connect(options)
      socket.setNoDelay(true)
      socket.on('session', (fresh) => sessions.set(port, fresh))
      socket.on('error', () => {})
      open.add(socket)
      const isIn = await new Promise<boolean>((resolve) => {
        const timer = setTimeout(resolve, Math.min(connectMs, leftMs()), false)
        socket.once('secureConnect', () => resolve(true))
        socket.once('close', () => {
          clearTimeout(timer)
          open.delete(socket)
          resolve(false)
        })
      })
      if (isIn) return socket
      seen.refused++
      socket.destroy()
      await pause(comeBackMs)
      return undefined
    },

    /** Resolves with true when the bytes are written. False: the connection ended, or `patienceMs` passed. */
    async write(socket: TLSSocket, bytes: Buffer, patienceMs = 2_000): Promise<boolean> {
      if (socket.destroyed) return false
      const hasLeft = await new Promise<boolean>((resolve) => {
        const timer = setTimeout(resolve, Math.min(patienceMs, leftMs()), false)
        const ended = () => settle(false)
        const settle = (result: boolean) => {
          clearTimeout(timer)
          socket.off('close', ended)
          resolve(result)
        }
        socket.once('close', ended)
        socket.write(bytes, (error) => settle(!error))
      })
      if (hasLeft) seen.bytes += bytes.length
      return hasLeft
    },

    /** Waits until `ms` have passed, the connection has ended, or the attack is over. */
    async hold(socket: TLSSocket, ms: number): Promise<void> {
      await new Promise<void>((resolve) => {
        if (socket.destroyed) return resolve()
        const timer = setTimeout(resolve, Math.min(ms, leftMs()))
        socket.once('close', () => {
          clearTimeout(timer)
          resolve()
        })
      })
    },

    /** Closes a connection. A connection that the node has already ended counts as cut. */
    leave(socket: TLSSocket): void {
      if (socket.destroyed && leftMs() > 0) seen.cut++
      socket.destroy()
    },

    answered(what: string): void {
      seen.answers[what] = (seen.answers[what] ?? 0) + 1
    },

    pause,
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, Math.min(ms, leftMs())))
  }
}

/** Counts the HTTP answers of a connection by status. */
export function countStatuses(socket: TLSSocket, { answered }: Assault): void {
  socket.on('data', (chunk: Buffer) => {
    for (const [, status = ''] of chunk.toString('latin1').matchAll(/HTTP\/1\.1 (\d{3})/g)) answered(status)
  })
}

/** Resolves with the next bytes from the node. Undefined if none come within `patienceMs`. */
export function nextChunk(socket: TLSSocket, patienceMs = 2_000): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve(undefined)
    const settle = (chunk?: Buffer) => {
      clearTimeout(timer)
      socket.off('data', settle)
      socket.off('close', ended)
      resolve(chunk)
    }
    const ended = () => settle()
    const timer = setTimeout(ended, patienceMs)
    socket.on('data', settle)
    socket.on('close', ended)
  })
}
