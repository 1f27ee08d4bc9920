import { readFileSync } from 'node:fs'
import { createServer as createHttpServer, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { listen } from '../listen.ts'

/* Receivers of webhooks, plugin targets and outputs that hang, lie or flood. */

/** Delay of a late acknowledgement, milliseconds. A delivery would fail after 20 s. */
const lateMs = 15_000
/** Between two bytes of an answer that drips, milliseconds. */
const dripMs = 5_000

const ok = 'HTTP/1.1 200 OK\r\n'
const noise = Buffer.from(Array.from({ length: 1_000 }, (_, index) => (index * 197 + 13) % 256))

interface Asked {
  /** The connection: an answer may write bytes to it that are no HTTP. */
  socket: Socket
  response: ServerResponse
  /** Ends the connection with RST. */
  reset: () => void
}

/** What a receiver does with a request. */
const answers = {
  late: ({ response }) => void setTimeout(() => response.writeHead(204).end(), lateMs).unref(),
  silent: () => undefined,
  dripping: ({ socket }) => drip(socket, `${ok}content-length: 0\r\n\r\n`),
  'dripping body': ({ socket }) => drip(socket, 'x'.repeat(1_000), `${ok}content-length: 1000\r\n\r\n`),
  garbage: ({ socket }) => void socket.write(Buffer.concat([Buffer.from(ok), noise])),
  'garbage body': ({ socket }) =>
    void socket.write(Buffer.concat([Buffer.from(`${ok}content-length: ${noise.length}\r\n\r\n`), noise])),
  'no HTTP': ({ socket }) => void socket.end(noise),
  reset: ({ reset }) => reset(),
  redirect: ({ response }) => response.writeHead(307, { location: '/again' }).end(),
  'endless body': ({ socket }) => flood(socket, 'x'.repeat(1_000), `${ok}\r\n`),
  'endless headers': ({ socket }) => flood(socket, `x-flood: ${'x'.repeat(1_000)}\r\n`, ok),
  'interim answers': ({ socket }) => flood(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n'),
} satisfies Record<string, (asked: Asked) => void>

/** What a server over TCP does with a connection. */
const connections = {
  'never reads': (socket) => void socket.pause(),
  'resets at once': (socket) => void socket.resetAndDestroy(),
  floods: (socket) => flood(socket, 'x'.repeat(1_000)),
} satisfies Record<string, (socket: Socket) => void>

export type Answer = keyof typeof answers
export type TcpManner = keyof typeof connections

export type Receiver = Awaited<ReturnType<typeof startReceiver>>

/** Starts a server that answers each request in one way: over TLS with the files, else plain. `port` 0: any. */
export async function startReceiver(
  answer: Answer,
  { port = 0, files }: { port?: number; files?: { cert: string; key: string } },
) {
  const raw = new Map<number, Socket>()
  const act: (asked: Asked) => void = answers[answer]
  const listener: RequestListener = (request, response) => {
    counts.units++
    request.resume()
    const { socket } = request
    // Under a TLS socket, only the TCP socket can send RST.
    act({ socket, response, reset: () => raw.get(socket.remotePort ?? 0)?.resetAndDestroy() })
  }
  const server = files
    ? createHttpsServer({ cert: readFileSync(files.cert), key: readFileSync(files.key) }, listener)
    : createHttpServer(listener)
  server.on('connection', (socket: Socket) => {
    const { remotePort = 0 } = socket
    raw.set(remotePort, socket)
    socket.on('close', () => raw.delete(remotePort))
  })
  const { counts, listening } = countOf(server)
  return listening(port)
}

/** Starts a server over TCP that treats each connection in one way. */
export async function startTcpReceiver(manner: TcpManner, { port = 0 }: { port?: number }) {
  const act: (socket: Socket) => void = connections[manner]
  const server = createTcpServer((socket) => {
    counts.units++
    act(socket)
  })
  const { counts, listening } = countOf(server)
  return listening(port)
}

/** Counts the requests and bytes of a server, and ends it. */
function countOf(server: Server) {
  const open = new Set<Socket>()
  const counts = { units: 0, bytes: 0 }
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      counts.bytes += socket.bytesWritten
      open.delete(socket)
    })
  })
  // The hub ends connections in the middle of an answer.
  for (const event of ['clientError', 'tlsClientError'])
    server.on(event, (_error: Error, socket: Socket) => socket.destroy())
  return {
    counts,
    async listening(port: number) {
      return {
        port: await listen(server, { port }),
        /** Requests or connections so far, and bytes that went out. */
        seen: () => ({
          units: counts.units,
          bytes: [...open].reduce((sum, { bytesWritten }) => sum + bytesWritten, counts.bytes),
        }),
        close(): void {
          for (const socket of open) socket.destroy()
          server.close()
        },
      }
    },
  }
}

/** Writes a text byte by byte. */
function drip(socket: Socket, text: string, head = ''): void {
  let next = 0
  if (head !== '') socket.write(head)
  const timer = setInterval(() => socket.write(text[next++ % text.length] ?? ''), dripMs)
  socket.on('close', () => clearInterval(timer))
}

/** Writes a piece again and again, as fast as the other side reads. */
function flood(socket: Socket, piece: string, head = ''): void {
  const chunk = Buffer.from(piece.repeat(Math.ceil((64 * 1024) / piece.length)))
  const more = () => {
    while (!socket.destroyed && socket.write(chunk));
  }
  if (head !== '') socket.write(head)
  socket.on('drain', more)
  more()
}
