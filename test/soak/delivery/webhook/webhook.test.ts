import { execFile } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer as createPlainServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { ensureDevelopmentCertificates } from '../../../../certs/development.ts'
import { createWebhooks } from '../../../../delivery/webhook/webhook.ts'
import { startDeadline } from '../../../../store/deadline.ts'
import { listen } from '../../../listen.ts'
import { stall } from '../../../stall.ts'
import { temporaryDirectory } from '../../../start-hub.ts'

/*
 * Servers that are hostile or broken. Every attempt must end in time with an outcome, and leave no connection behind.
 */

type Serve = (socket: TLSSocket, request: string) => void

const run = promisify(execFile)
const deadlineMs = 700

/** Starts the client under test, and a server that calls `serve` for every request. */
async function start(
  t: Test,
  options: { trusted?: boolean; names?: string[]; allowHalfOpen?: boolean; maxKept?: number } = {},
) {
  const home = await temporaryDirectory(t)
  const tls = await ensureDevelopmentCertificates(home, options.names ?? [])
  const open = new Set<Socket>()
  let serve: Serve = () => undefined
  let connections = 0
  let changed = () => {}
  const pair = { key: readFileSync(tls.key), cert: readFileSync(tls.cert) }
  const server = createServer(pair, (socket) => {
    connections++
    open.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      open.delete(socket)
      changed()
    })
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      const [head, body] = text.split('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(head ?? '')?.[1])
      if (body === undefined || body.length < length) return
      const request = text
      text = ''
      serve(socket, request)
    })
  })
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const ca = options.trusted === false ? {} : { ca: () => readFileSync(tls.ca ?? '', 'utf8') }
  const { maxKept = 64 } = options
  const webhooks = createWebhooks({ allowPrivate: true, userAgent: 'test', maxKept, ...ca })
  t.teardown(() => {
    webhooks.close()
    for (const socket of open) socket.destroy()
    server.close()
  })
  const stopping = new AbortController()
  const post = (body: Buffer = Buffer.from('{}'), url = `https://localhost:${port}/hook`) =>
    webhooks.post({ url, body, token: 'token', deadlineMs, signal: stopping.signal })
  return {
    post,
    stopping,
    webhooks,
    pair,
    port,
    connections: () => connections,
    serve(next: Serve): void {
      serve = next
    },
    /** Resolves when exactly `count` connections are open. */
    async has(count: number): Promise<void> {
      while (open.size !== count) {
        await new Promise<void>((resolve) => {
          changed = resolve
        })
      }
    },
    /** Sends one request, which the server answers with `serving`. */
    async to(serving: Serve) {
      serve = serving
      const began = performance.now()
      return { ...(await post()), ms: performance.now() - began }
    },
    /** Resolves when every connection is closed. */
    async quiet(): Promise<void> {
      while (open.size > 0) {
        await new Promise<void>((resolve) => {
          changed = resolve
        })
      }
    },
  }
}

const say =
  (text: string): Serve =>
  (socket) =>
    void socket.write(text)

/** Writes `first`, and then writes `then` every 5 ms until the connection is closed. */
const repeat =
  (first: string, then: string): Serve =>
  (socket) => {
    socket.write(first)
    const timer = setInterval(() => socket.write(then), 5)
    socket.on('close', () => clearInterval(timer))
  }

/** The same, so much at a time that it comes to more than is allowed before the deadline, however busy the machine is. */
const flood = (first: string, then: string) => repeat(first, then.repeat(40))

const early = 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'
const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'
const late = { result: 'failed', status: null, reason: 'no answer within 0.7 s' }
const acknowledged = (status: number) => ({ result: 'acknowledged', status, reason: null })

t.test(
  'whatever it answers, there is an outcome in time and the connection ends',
  { timeout: 120_000 },
  async (t) => {
    const { to, quiet } = await start(t)
    const table: [what: string, serve: Serve, outcome: object][] = [
      ['nothing', () => undefined, late],
      ['half a status line', say('HTTP/1.1 20'), late],
      ['headers that do not end', say('HTTP/1.1 200 OK\r\nx: y\r\n'), late],
      [
        'headers without end',
        flood('HTTP/1.1 200 OK\r\n', `x: ${'y'.repeat(999)}\r\n`),
        { status: null, reason: 'Headers Overflow Error' },
      ],
      [
        'a header field without end',
        flood('HTTP/1.1 200 OK\r\nx: ', 'y'.repeat(999)),
        { status: null, reason: 'Headers Overflow Error' },
      ],
      [
        'a reason without end',
        flood('HTTP/1.1 200 ', 'y'.repeat(999)),
        { status: null, reason: 'Headers Overflow Error' },
      ],
      ['no HTTP', say('220 mail.example ESMTP\r\n'), { status: null, reason: /does not match the HTTP/ }],
      ['100 that nobody asked for', say(`HTTP/1.1 100 Continue\r\n\r\n${ok}`), acknowledged(200)],
      ['100, and then nothing', say('HTTP/1.1 100 Continue\r\n\r\n'), late],
      ['10 interim answers', say(`${early.repeat(10)}${ok}`), acknowledged(200)],
      ['1xx without end', flood('', early), { status: null, reason: 'sent more than 10 interim answers' }],
      ['102, and then nothing', say('HTTP/1.1 102 Processing\r\n\r\n'), acknowledged(102)],
      ['102 without end', repeat('', 'HTTP/1.1 102 Processing\r\n\r\n'), acknowledged(102)],
      [
        '102, and then 500',
        say('HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n'),
        acknowledged(102),
      ],
      [
        '101',
        say('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
        { result: 'failed', status: null },
      ],
      ['101 to nothing', say('HTTP/1.1 101 Switching Protocols\r\n\r\n'), { result: 'failed', status: 101 }],
      ['a body without end', repeat('HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(9_999)), acknowledged(200)],
      [
        'a body that drips',
        repeat('HTTP/1.1 201 OK\r\ncontent-length: 9999\r\n\r\n', 'x'),
        acknowledged(201),
      ],
      [
        'a body that does not come',
        say('HTTP/1.1 500 No\r\ncontent-length: 9\r\n\r\n'),
        { result: 'failed', status: 500 },
      ],
      [
        'trailers without end',
        repeat('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n', `x: ${'y'.repeat(999)}\r\n`),
        acknowledged(200),
      ],
      [
        'chunk extensions without end',
        repeat('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1', `;${'y'.repeat(999)}`),
        acknowledged(200),
      ],
      [
        'a body that is broken off',
        (socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx'),
        acknowledged(200),
      ],
      ['two answers', say(`${ok}HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n`), acknowledged(200)],
      [
        'two lengths',
        say('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx'),
        { status: null, reason: 'Response body length does not match content-length header' },
      ],
      [
        'status 999',
        say('HTTP/1.1 999 What\r\ncontent-length: 0\r\n\r\n'),
        { result: 'failed', status: 999 },
      ],
      ['it closes', (socket) => void socket.end(), { result: 'failed', status: null }],
      ['it breaks off', (socket) => void socket.destroy(), { result: 'failed', status: null }],
    ]
    for (const [what, serve, outcome] of table) {
      const { ms, ...found } = await to(serve)
      t.match(found, outcome, what)
      t.ok(ms < deadlineMs + 5_000, `${what}: ${Math.round(ms)} ms`)
    }
    await quiet()
  },
)

t.test(
  'an answer before the message was read leaves no connection behind',
  { timeout: 120_000 },
  async (t) => {
    const home = await temporaryDirectory(t)
    const tls = await ensureDevelopmentCertificates(home, [])
    const server = createServer({ key: readFileSync(tls.key), cert: readFileSync(tls.cert) }, (socket) => {
      socket.on('error', () => undefined)
      socket.once('readable', () => socket.write(ok)) // and does not read the request
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const webhooks = createWebhooks({
      allowPrivate: true,
      userAgent: 'test',
      ca: () => readFileSync(tls.ca ?? '', 'utf8'),
    })
    t.teardown(() => {
      webhooks.close()
      server.close()
    })
    let closed: Promise<unknown> | undefined
    const watch = (message: unknown) => {
      const { socket } = message as { socket: Socket }
      closed ??= new Promise((resolve) => socket.once('close', resolve))
    }
    subscribe('undici:client:connected', watch)
    t.teardown(() => unsubscribe('undici:client:connected', watch))
    const post = (body: Buffer) =>
      webhooks.post({
        url: `https://localhost:${port}/`,
        token: 't',
        deadlineMs: 5_000,
        body,
        signal: new AbortController().signal,
      })
    t.match(await post(Buffer.alloc(20_000_000, 'x')), acknowledged(200))
    t.match(await post(Buffer.from('{}')), acknowledged(200), 'the next message goes another way')
    t.ok(closed)
    await closed
  },
)

t.test('statuses and what they come to', async (t) => {
  const { to } = await start(t)
  const results: Record<string, number[]> = {
    acknowledged: [200, 201, 202, 204],
    failed: [203, 205, 206, 300, 301, 302, 304, 307, 308, 408, 429, 500, 502, 503, 504, 599],
    refused: [400, 401, 403, 404, 405, 413, 418, 422, 451, 499],
    gone: [410],
  }
  for (const [result, statuses] of Object.entries(results)) {
    for (const status of statuses) {
      const location = status >= 300 && status < 400 ? 'location: https://localhost:1/\r\n' : ''
      const found = await to(say(`HTTP/1.1 ${status} x\r\n${location}content-length: 0\r\n\r\n`))
      t.match(found, { result, status, reason: result === 'acknowledged' ? null : `answered ${status}` })
    }
  }
})

t.test('Retry-After, in both notations and in none', async (t) => {
  const { to } = await start(t)
  const inAMinute = new Date(Date.now() + 60_000).toUTCString()
  const table: [value: string, from: number, to: number][] = [
    ['0', 0, 0],
    ['3', 3_000, 3_000],
    ['999999999', 999_999_999_000, 999_999_999_000],
    ['9999999999', 999_999_999_000, 999_999_999_000],
    ['9'.repeat(400), 999_999_999_000, 999_999_999_000],
    [inAMinute, 50_000, 60_000],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0, 0],
  ]
  for (const [value, least, most] of table) {
    for (const status of [429, 503]) {
      const found = await to(
        say(`HTTP/1.1 ${status} x\r\nretry-after: ${value}\r\ncontent-length: 0\r\n\r\n`),
      )
      const { retryAfterMs = -1 } = found
      t.ok(retryAfterMs >= least && retryAfterMs <= most, `${value}: ${retryAfterMs}`)
    }
  }
  for (const value of ['', 'soon', 'NaN', '-5', '1e3', '\u00bd']) {
    const found = await to(say(`HTTP/1.1 503 x\r\nretry-after: ${value}\r\ncontent-length: 0\r\n\r\n`))
    const { retryAfterMs = 0 } = found
    t.ok(retryAfterMs >= 0 && Number.isFinite(retryAfterMs), value)
  }
  const other = await to(say('HTTP/1.1 500 x\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n'))
  t.equal(other.retryAfterMs, undefined)
})

t.test('a certificate that nobody vouches for, or of another name', async (t) => {
  const untrusted = await start(t, { trusted: false })
  t.match(await untrusted.post(), { result: 'failed', status: null, reason: /certificate/i })
  t.equal((await untrusted.to(say(ok))).status, null)
  const { post, port } = await start(t)
  const named = await post(undefined, `https://other.localhost:${port}/`)
  t.match(named, { result: 'failed', status: null, reason: /altnames|ENOTFOUND|cannot be resolved/ })
})

t.test('a server that wants an expensive key exchange', async (t) => {
  const { post } = await start(t)
  const untrusting = await start(t, { trusted: false })
  const dir = t.testdir()
  const openssl = (command: string) => run('openssl', command.split(' '), { cwd: dir })
  await openssl('req -x509 -subj /CN=localhost -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem')
  await openssl('genpkey -genparam -algorithm DH -pkeyopt group:ffdhe2048 -out dh.pem')
  const [key, cert, dhparam] = ['key.pem', 'cert.pem', 'dh.pem'].map((name) => readFileSync(join(dir, name)))
  const servers: [what: string, options: TlsOptions][] = [
    ['ffdhe8192', { ecdhCurve: 'ffdhe8192', minVersion: 'TLSv1.3' }],
    ['a field of its own', { dhparam, ciphers: 'DHE:@SECLEVEL=0', maxVersion: 'TLSv1.2' }],
  ]
  for (const [what, options] of servers) {
    const server = createServer({ key, cert, ...options })
    const port = await listen(t, server)
    for (const one of [post, untrusting.post]) {
      const ended = new Promise<string>((resolve) => {
        server.once('secureConnection', () => resolve('agreed'))
        server.once('tlsClientError', ({ code = '' }: NodeJS.ErrnoException) => resolve(code))
      })
      t.match(await one(undefined, `https://localhost:${port}/`), { result: 'failed', status: null }, what)
      t.match(await ended, /^ERR_SSL_NO_(SHARED_CIPHER|SUITABLE_KEY_SHARE|SUITABLE_GROUPS)/, what)
    }
  }
})

t.test('why a handshake failed, without internals of OpenSSL', async (t) => {
  const { post, pair } = await start(t)
  const alert = Buffer.from([0x15, 3, 3, 0, 2, 2, 40])
  const servers: [reason: RegExp, server: Server][] = [
    [
      /^TLS: [\w/]+ alert handshake failure$/,
      createPlainServer((socket) => socket.once('data', () => socket.end(alert))),
    ],
    [
      /^TLS: wrong version number$/,
      createPlainServer((socket) => socket.once('data', () => socket.end('HTTP/1.1 400 x'))),
    ],
    [
      /^TLS: [\w/]+ alert certificate required$/,
      createServer({ ...pair, requestCert: true, minVersion: 'TLSv1.3' }),
    ],
  ]
  for (const [reason, server] of servers) {
    const port = await listen(t, server)
    t.match(await post(undefined, `https://localhost:${port}/`), { result: 'failed', status: null, reason })
  }
})

t.test('a handshake that never ends', async (t) => {
  const sockets = new Set<Socket>()
  let closed = () => {}
  const gone = new Promise<void>((resolve) => {
    closed = resolve
  })
  const server = createPlainServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.resume()
    socket.on('close', closed)
  })
  const port = await listen(t, server)
  const { post } = await start(t)
  t.match(await post(undefined, `https://localhost:${port}/`), late)
  await gone
})

t.test('nobody there', async (t) => {
  const { post } = await start(t)
  t.match(await post(undefined, 'https://localhost:1/'), { result: 'failed', reason: /ECONNREFUSED/ })
})

t.test('a kept connection that the server has closed is no failure; a second time it is', async (t) => {
  const { to, connections } = await start(t)
  await to(say(ok))
  let requests = 0
  const first = await to((socket) => {
    requests++
    if (requests === 1) socket.destroy()
    else socket.write(ok)
  })
  t.match(first, acknowledged(200))
  t.match({ requests, connections: connections() }, { requests: 2, connections: 2 })
  const always = await to((socket) => void socket.destroy())
  t.match(always, { result: 'failed', status: null })
})

t.test('a short body in thousands of pieces ends its connection', async (t) => {
  const { to, connections } = await start(t)
  const inPieces = (count: number) =>
    say(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(count)}0\r\n\r\n`)
  t.match(await to(inPieces(1_000)), acknowledged(200))
  t.match(await to(inPieces(1_100)), acknowledged(200))
  t.equal(connections(), 1)
  t.match(await to(say(ok)), acknowledged(200))
  t.equal(connections(), 2)
})

t.test('both tries on kept connections share the deadline', async (t) => {
  const { to } = await start(t)
  await to(say(ok))
  let requests = 0
  let isOver = false
  // A pause of the machine delays this deadline like the one of the request.
  const end = startDeadline(deadlineMs * 1.6, () => {
    isOver = true
  })
  const found = await to((socket) => {
    if (requests++ === 0) setTimeout(() => socket.destroy(), deadlineMs - 200)
  })
  t.match(found, late)
  t.notOk(isOver)
  end()
})

t.test('an answer that came while the hub was held up is in time', async (t) => {
  const { to } = await start(t)
  await to(say(ok))
  const found = await to((socket) => {
    socket.write(ok)
    stall(deadlineMs + 300)
  })
  t.match(found, acknowledged(200))
})

t.test('nothing is sent any more when the hub stops', async (t) => {
  const { to, post, stopping, connections } = await start(t)
  const hanging = to(() => stopping.abort())
  t.match(await hanging, { result: 'failed', reason: 'the hub is stopping' })
  const before = connections()
  t.match(await post(), { result: 'failed', reason: 'the hub is stopping' })
  t.equal(connections(), before)
})

t.test('so many unused connections are kept, and no more', async (t) => {
  const one = await start(t, { maxKept: 2 })
  const waiting: TLSSocket[] = []
  one.serve((socket) => {
    waiting.push(socket)
    if (waiting.length < 4) return
    for (const each of waiting) each.write('HTTP/1.1 204 x\r\n\r\n')
  })
  const outcomes = await Promise.all([1, 2, 3, 4].map(() => one.post()))
  for (const outcome of outcomes) t.match(outcome, { result: 'acknowledged' })
  await one.has(2)
  one.serve((socket) => socket.write('HTTP/1.1 204 x\r\n\r\n'))
  for (const _each of [1, 2, 3]) await Promise.all([one.post(), one.post()])
  t.equal(one.connections(), 4, 'they are used again, and again')
})

t.test('so many answers are read to their end, and no more', async (t) => {
  const one = await start(t, { maxKept: 2 })
  const closed: number[] = []
  let count = 0
  let noted = () => {}
  const first = new Promise<void>((resolve) => {
    noted = resolve
  })
  one.serve((socket) => {
    const number = ++count
    socket.once('close', () => {
      closed.push(number)
      noted()
    })
    socket.write('HTTP/1.1 200 x\r\ncontent-length: 100\r\n\r\n')
  })
  for (const _each of [1, 2, 3]) t.match(await one.post(), { result: 'acknowledged' })
  await first
  t.same(closed, [3], 'the two before are still read')
})
