import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { type Attack, countStatuses, createAssault, type Target } from './attack.ts'

/** Streams that read nothing. */
const streams = 3_000
/** Addresses of this machine from which they come. */
const addresses = 100
const openedAtOnce = 50
/** A worker asks for `now` this often, milliseconds. Ten workers ask 500 times a second. */
const intervalMs = 20

/**
 * Opens streams of all livestreams, and reads none of them. Meanwhile visitors attack: they ask what is on air.
 * Every event of the pair is for all of the streams.
 */
export async function prepareSlowStreams(target: Target): Promise<Attack> {
  let session: Buffer | undefined
  const open: TLSSocket[] = []
  while (open.length < streams) {
    const next = Array.from({ length: openedAtOnce }, (_, nth) => openStream(open.length + nth))
    open.push(...(await Promise.all(next)))
  }
  const [livestream] = target.livestreams
  const request = Buffer.from(
    `GET /livestreams/${livestream?.id}/now HTTP/1.1\r\nauthorization: Bearer ${target.token}\r\n\r\n`,
  )

  return async (_target, force) => {
    const assault = createAssault(force)
    const seen = await assault.everywhere(async (worker) => {
      const socket = await assault.connect(target.httpsPort, worker)
      if (!socket) return
      countStatuses(socket, assault)
      while (!assault.isOver() && (await assault.write(socket, request))) {
        assault.seen.units++
        await assault.pause(intervalMs)
      }
      assault.leave(socket)
    })
    for (const stream of open) stream.destroy()
    return { ...seen, opened: seen.opened + open.length }
  }

  /** Resolves at the first bytes of the stream. */
  function openStream(nth: number): Promise<TLSSocket> {
    // `tls.connect` passes `localAddress` on, but its types lack it.
    const options: ConnectionOptions & { localAddress: string } = {
      host: '127.0.0.1',
      port: target.httpsPort,
      servername: 'localhost',
      localAddress: `127.0.1.${1 + (nth % addresses)}`,
      rejectUnauthorized: false,
      ...(session && { session }),
    }
    const socket = connect(options)
    socket.on('session', (fresh) => {
      session = fresh
    })
    return new Promise((resolve, reject) => {
      socket.on('error', reject)
      socket.once('secureConnect', () => socket.write('GET /stream HTTP/1.1\r\n\r\n'))
      socket.once('data', () => {
        socket.pause()
        socket.off('error', reject).on('error', () => {})
        resolve(socket)
      })
    })
  }
}
