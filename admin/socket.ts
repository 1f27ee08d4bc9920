import { setMaxListeners } from 'node:events'
import { chmod, lstat, mkdtemp, rename, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type Server as NetServer } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { makeDirectory } from '../config/make-directory.ts'
import { isRecord, parseJson } from '../event/json.ts'
import { isLineByLine, sendLines } from '../operations/lines.ts'
import { type Commands, createPerform } from '../operations/perform.ts'
import { createRunningWork } from '../store/running-work.ts'
import type { Log } from '../telemetry/log.ts'
import { jsonInTurns } from '../telemetry/turns.ts'

/** Longest request, bytes. The largest request is the dry run of an event. */
const maxBodyBytes = 1024 * 1024
/** Longest path of a socket: `sun_path` of unix(7) without its closing null. */
const maxPathBytes = 107

/**
 * Opens the admin socket: HTTP, `POST /{command}` with `{ args, who }`. The answer is `{ result }`, `{ error: { code,
 * message } }`, or lines of JSON. A user who can open the file (mode 0600) can give all commands.
 */
export async function startAdminSocket(parts: { path: string; commands: Commands; log: Pick<Log, 'error'> }) {
  const { path, log } = parts
  const perform = createPerform(parts)
  const answering = createRunningWork()
  const closing = new AbortController()
  // All that is sent line by line listens to it.
  setMaxListeners(0, closing.signal)
  const server = createServer((request, response) => void respond(request, response))
  // A client that stalls must not keep the node from closing.
  server.requestTimeout = 10_000
  server.headersTimeout = 10_000

  await checkSocketPath(path)
  await listenPrivately(server, path)
  const own = await lstat(path)

  return {
    path,
    /** Finishes the answers that are under way, then removes the socket. */
    async close(): Promise<void> {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      closing.abort()
      await answering.ended()
      server.closeAllConnections()
      await closed
      // Another node may have taken the path over in the meantime.
      const present = await lstat(path).catch(() => undefined)
      if (present?.ino === own.ino && present.dev === own.dev) await rm(path, { force: true })
    },
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request).catch(() => undefined)
    if (body === undefined) return void request.destroy()
    const answer = answerTo(request, body).then(({ status, body }) =>
      isLineByLine(body) ? sendLines(response, body, closing.signal) : send(response, { status, body }),
    )
    answering.add(answer)
    await answer.catch((err: unknown) => {
      log.error({ err }, 'the answer to an admin command was cut off')
      response.destroy()
    })
  }

  async function answerTo(request: IncomingMessage, body: Buffer | 'too long'): Promise<Reply> {
    if (body === 'too long') return fault(413, 'request.size', 'the request is longer than 1 MiB')
    if (request.method !== 'POST') return fault(405, 'request.method', 'commands are sent with POST')
    const call = parseCall(body)
    if ('problem' in call) return fault(400, 'request.invalid', call.problem)
    const performed = await perform(commandOf(request.url), call.args, call.who)
    if ('error' in performed) {
      const { code, message } = performed.error
      return fault(statuses[code], code, message)
    }
    const { result } = performed
    return { status: 200, body: isLineByLine(result) ? result : { result } }
  }
}

const statuses = { 'command.unknown': 404, refused: 409, internal: 500 }

interface Reply {
  status: number
  body: unknown
}

function fault(status: number, code: string, message: string): Reply {
  return { status, body: { error: { code, message } } }
}

/** Path of the admin socket of the node with this data directory. */
export function socketPathIn(dataDir: string): string {
  return join(dataDir, 'admin.sock')
}

/** Checks that the path is free, or holds only the socket of a dead process. */
export async function checkSocketPath(path: string): Promise<void> {
  if (Buffer.byteLength(path) > maxPathBytes) {
    throw new Error(`the path of the admin socket is longer than ${maxPathBytes} bytes: ${path}`)
  }
  await makeDirectory(dirname(path))
  const present = await lstat(path).catch(() => undefined)
  if (present === undefined) return
  if (!present.isSocket())
    throw new Error(`${path} exists and is not a socket: the admin socket cannot be opened`)
  if (await isAnswered(path)) throw new Error(`another node is running on the admin socket ${path}`)
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = connect(path)
    probe.once('connect', () => {
      probe.destroy()
      resolve(true)
    })
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') resolve(false)
      else reject(new Error(`the admin socket ${path} cannot be used (${error.code ?? error.message})`))
    })
  })
}

/**
 * Makes the socket in a private directory. Sets mode 0600, then moves the socket to `path`. So others can never reach
 * the socket while its mode is wider. A umask instead would also affect other files that the process makes.
 */
export async function listenPrivately(server: NetServer, path: string): Promise<void> {
  // Not `join(dirname(path), '.')`: `join` would drop the dot. `mkdtemp` would then make a directory beside
  // `dirname(path)`. The node may lack the permission to write there. The name `s` is short, because the path of a
  // socket has a limit.
  const hidden = await mkdtemp(`${dirname(path)}/.`)
  const draft = join(hidden, 's')
  try {
    if (Buffer.byteLength(draft) > maxPathBytes) {
      throw new Error(
        `the directory of the admin socket has too long a path: ${basename(path)} needs a shorter one`,
      )
    }
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(draft, () => {
        server.off('error', reject)
        resolve()
      })
    })
    await chmod(draft, 0o600)
    await rename(draft, path)
  } catch (error) {
    server.close()
    throw error
  } finally {
    await rm(hidden, { recursive: true, force: true })
  }
}

/** The whole body. A body that is too long is discarded. Rejects if the client gives up. */
async function readBody(request: IncomingMessage): Promise<Buffer | 'too long'> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    length += chunk.length
    if (length <= maxBodyBytes) chunks.push(chunk)
    else chunks.length = 0
  }
  return length > maxBodyBytes ? 'too long' : Buffer.concat(chunks)
}

function commandOf(url = '/'): string {
  try {
    return decodeURIComponent(url.slice(1))
  } catch {
    return url.slice(1)
  }
}

function parseCall(body: Buffer): { args: Record<string, unknown>; who: string } | { problem: string } {
  const parsed = parseJson(body)
  const { args = {}, who } = 'value' in parsed && isRecord(parsed.value) ? parsed.value : {}
  if (isRecord(args) && typeof who === 'string' && who !== '') return { args, who }
  const problem = 'the body must be a JSON object with args (an object) and who (a text)'
  const [first] = 'errors' in parsed ? parsed.errors : []
  return { problem: first ? `${problem}: at ${first.path}: ${first.message}` : problem }
}

/** Resolves when the answer is written, or the client is gone. */
async function send(response: ServerResponse, { status, body }: Reply): Promise<void> {
  const text = await jsonInTurns(body)
  return new Promise((resolve) => {
    response.once('close', resolve)
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(text)
  })
}
