import { readFileSync } from 'node:fs'
import { connect } from 'node:tls'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { exchange, secured } from '../../bridge-https/raw.ts'
import { institutions, playing, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'
import { words } from '../../words.ts'

const [own = ''] = institutions
const events = '/events/de.org.hub.v1.radio.track.playing'

t.test('every row of the table of errors (service.md §7)', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const { token: publisher } = await addUser(hub, api, own, { permissions: ['publish'] })
  const { token: subscriber } = await addUser(hub, api, own, { permissions: ['subscribe'] })
  const guarded = [
    ['POST', events, subscriber],
    ['GET', '/topics', publisher],
    ['GET', '/topics/x', publisher],
    ['POST', '/subscriptions', publisher],
    ['GET', '/subscriptions', publisher],
    ['GET', '/subscriptions/x', publisher],
    ['DELETE', '/subscriptions/x', publisher],
    ['PUT', '/pubsub', publisher],
  ] as const

  await t.test('401: the header is absent, or holds no bearer token', async (t) => {
    for (const [method, path] of [...guarded, ['POST', '/pubsub'] as const]) {
      for (const authorization of [undefined, '', 'Basic dXNlcjpwYXNz', 'Bearer', 'Bearer  ', token]) {
        const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
        const { status, json, headers: answered } = await api.call(method, path, { headers })
        t.match(answered['www-authenticate'], /^Bearer realm="/, 'RFC 9110 §15.5.2')
        t.equal(status, 401, `${method} ${path} ${authorization?.slice(0, 12)}`)
        t.same(json, {
          message: 'Missing authentication',
          errors: [
            {
              path: '.headers.authorization',
              message: 'The header Authorization with a bearer token is missing',
              errorCode: 'authorization.missing',
            },
          ],
          trace: null,
        })
      }
    }
  })

  await t.test('403: the token is not valid', async (t) => {
    for (const [method, path] of guarded) {
      const { status, json } = await api.call(method, path, { token: 'x.y.z' })
      t.equal(status, 403, `${method} ${path}`)
      t.same(json, {
        message: 'Invalid authorization',
        errors: [
          {
            path: '.headers.authorization',
            message: 'The token is not valid, or has expired',
            errorCode: 'authorization.invalid',
          },
        ],
        trace: null,
      })
    }
  })

  await t.test('403: the permission is missing, whatever the body is', async (t) => {
    for (const [method, path, lacking] of guarded) {
      const body = method === 'POST' || method === 'PUT' ? '{' : undefined
      const { status, json } = await api.call(method, path, { token: lacking, body })
      t.equal(status, 403, `${method} ${path}`)
      t.same(json, {
        message: 'Invalid authorization',
        errors: [
          {
            path: '.headers.authorization',
            message: `The user lacks the permission for this: ${path === events ? 'publish' : 'subscribe'}`,
            errorCode: 'authorization.permission',
          },
        ],
        trace: null,
      })
    }
  })

  await t.test('404: unknown routes and wrong methods', async (t) => {
    for (const [method, path] of [
      ['GET', '/nothing'],
      ['GET', '/auth/login'],
      ['PUT', '/auth/login'],
      ['DELETE', '/topics'],
      ['PATCH', '/subscriptions/x'],
      ['OPTIONS', '/subscriptions'],
      ['PUT', events],
      ['POST', '/events'],
      ['POST', `${events}/more`],
      ['GET', '//topics'],
      ['PROPFIND', '/'],
      ['GET', '/docs/static/../../etc/passwd'],
      ['GET', '/docs/static/..%2f..%2f..%2fetc%2fpasswd'],
    ] as const) {
      const { status, json } = await api.call(method, path, { token })
      t.equal(status, 404, `${method} ${path}`)
      t.same(json, { message: 'Not found', trace: null })
    }
  })

  await t.test('400: a body that is no JSON, or is not said to be', async (t) => {
    for (const path of [events, '/subscriptions', '/auth/login', '/auth/refresh', '/auth/reset']) {
      for (const body of ['', '{', 'null', '[]', '{"a":1,"a":2}', '{"__proto__":{}}', Buffer.from([0xff])]) {
        const { status, json } = await api.call('POST', path, { token, body })
        t.equal(status, 400, `${path} ${body}`)
        t.match(json, {
          message: 'Invalid input',
          errors: [{ path: /^\.body/, errorCode: 'payload.json' }],
          trace: null,
        })
      }
      for (const type of [
        'text/plain',
        'application/xml',
        'multipart/form-data; boundary=x',
        'nonsense',
        '',
      ]) {
        const { status, json } = await api.call('POST', path, {
          token,
          body: '{}',
          headers: { 'content-type': type },
        })
        t.equal(status, 400, `${path} ${type}`)
        t.match(json, {
          message: 'Invalid input',
          errors: [{ path: '.headers.content-type', errorCode: 'request.type' }],
          trace: null,
        })
      }
      const bare = await api.call('POST', path, { token })
      t.equal(bare.status, 400, `${path} without a body`)
      t.match(bare.json, { errors: [{ errorCode: 'request.type' }] })
    }
    const charset = await api.call('POST', '/auth/refresh', {
      body: '{"refreshToken":"x"}',
      headers: { 'content-type': 'Application/JSON; charset=utf-8' },
    })
    t.equal(charset.status, 403, 'parameters and case of the type do not matter')
  })

  await t.test('400: a password or token in a body that is no JSON is not repeated', async (t) => {
    for (const path of ['/auth/login', '/auth/refresh', '/auth/reset']) {
      for (const body of words(`
        {"email":"a@a.example","password":geheim-123456} {"refreshToken":geheim-123456,"token":geheim-123456}
        "geheim-123456" geheim-123456 {"token":"x","password":"geheim-123456}
        {"refreshToken":1234561234561234561234,"password":1234561234561234561234}
      `)) {
        const { status, text } = await api.call('POST', path, { body })
        t.equal(status, 400, `${path} ${body}`)
        t.notMatch(text, /geheim|1234/, `${path} ${body}`)
      }
    }
  })

  await t.test('400: compressed bodies', async (t) => {
    for (const encoding of ['gzip', 'deflate', 'br', 'identity, gzip']) {
      const body = gzipSync(JSON.stringify(playing(station())))
      const { status, json } = await api.call('POST', events, {
        token,
        body,
        headers: { 'content-encoding': encoding },
      })
      t.equal(status, 400, encoding)
      t.match(json, { errors: [{ path: '.headers.content-encoding', errorCode: 'request.encoding' }] })
    }
  })

  await t.test('413: more than 400 kB', async (t) => {
    const sizes = [409_600, 409_601, 1_000_000, 6_000_000]
    for (const path of [events, '/subscriptions']) {
      for (const size of sizes) {
        const body = JSON.stringify({ title: '' }).replace('""', `"${'x'.repeat(size - 12)}"`)
        t.equal(body.length, size)
        const { status, json } = await api.call('POST', path, { token, body })
        t.equal(status, size > 409_600 ? 413 : 400, `${path} ${size}`)
        if (status !== 413) continue
        t.same(json, {
          message: 'The body is too large',
          errors: [
            {
              path: '.body',
              message: 'The payload is too large: more than 409600 bytes',
              errorCode: 'payload.size',
            },
          ],
          trace: null,
        })
      }
    }
  })

  await t.test('413: more than 16 KiB from somebody who is not logged in', async (t) => {
    for (const path of ['/auth/login', '/auth/refresh', '/auth/reset']) {
      for (const size of [16_384, 16_385, 409_600, 6_000_000]) {
        const { status, json } = await api.call('POST', path, { body: 'x'.repeat(size) })
        t.equal(status, size > 16_384 ? 413 : 400, `${path} ${size}`)
        if (status === 413)
          t.match(json, { errors: [{ path: '.body', message: /16384/, errorCode: 'payload.size' }] })
      }
    }
    // The longest body of a log-in: all 1,024 characters of the password as JSON escapes.
    const body = `{"email":"${'a'.repeat(250)}@b.c","password":"${'\\ud83d\\ude00'.repeat(1024)}"}`
    t.equal((await api.call('POST', '/auth/login', { body })).status, 401)
  })

  await t.test('every answer has its request id in the log, and security headers', async (t) => {
    const { headers } = await api.call('GET', '/topics', { token })
    const lineOf = () =>
      hub.lines.find(({ reqId, msg }) => reqId === headers['x-request-id'] && msg === 'request')
    // The hub logs the request after it has sent the answer.
    await hub.until(async () => lineOf() !== undefined)
    const line = lineOf()
    t.match(line, { method: 'GET', path: '/topics', route: 'GET /topics', status: 200, ms: Number })
    t.equal(line?.remoteAddress, '127.0.0.1', 'so that operators see who tries passwords')
    t.match(headers, {
      'x-content-type-options': 'nosniff',
      'content-security-policy': /default-src 'none'/,
      'referrer-policy': 'no-referrer',
    })
    t.notOk(headers['x-powered-by'])
    t.notOk(JSON.stringify(hub.lines).includes(token), 'no token in the log')
  })
})

t.test('what is not proper HTTP gets the envelope as well', async (t) => {
  const hub = await startTestHub(t)
  const raw = (text: string | Buffer) => exchange(t, hub, text)
  const host = 'Host: localhost\r\n'
  t.match(await raw('nonsense\r\n\r\n'), envelope(400, 'request.form'))
  t.match(
    await raw(`GET / HTTP/1.1\r\n${host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`),
    /^HTTP\/1\.1 400/,
  )
  t.match(await raw(`GET / HTTP/1.1\r\n${host}x: ${'y'.repeat(20_000)}\r\n\r\n`), envelope(431))
  t.match(await raw(`GET /${'y'.repeat(20_000)} HTTP/1.1\r\n${host}\r\n`), envelope(431))
  const start = 'GET / HTTP/1.1\r\nConnection: close\r\n'
  t.match(await raw(`${start}\r\n`), /^HTTP\/1\.1 200/, 'a missing Host is forgiven')
  const upgrade =
    'GET /mqtt HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: mqtt\r\n'
  for (const first of [start, upgrade])
    t.match(await raw(`${first}${host}hOST: other\r\n\r\n`), envelope(400, 'request.form'), 'two are not')
  t.match(
    await raw(
      `POST /auth/login HTTP/1.1\r\n${host}Expect: miracles\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
    ),
    /^HTTP\/1\.1 400 .*\{"message":"Invalid input"/s,
  )
  t.match(await raw(`CONNECT example.com:443 HTTP/1.1\r\n${host}\r\n`), envelope(404))
  t.match(
    await raw(
      `POST /auth/login HTTP/1.1\r\n${host}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    ),
    /^HTTP\/1\.1 400 .*required\.openapi\.validation/s,
    'chunks are put together',
  )
})

t.test('a client that speaks HTTP/1.0 only is served, also when it says so by ALPN', async (t) => {
  const hub = await startTestHub(t)
  const ca = readFileSync(hub.caPath)
  for (const offered of [['http/1.0'], ['h2', 'http/1.0'], ['http/1.0', 'http/1.1'], []]) {
    const socket = connect({ host: 'localhost', port: hub.httpsPort, ca, ALPNProtocols: offered })
    t.teardown(() => socket.destroy())
    await secured(socket)
    const chosen = offered.includes('http/1.1') ? 'http/1.1' : offered.length > 0 && 'http/1.0'
    t.equal(socket.alpnProtocol, chosen)
    socket.write('GET /health HTTP/1.0\r\n\r\n')
    let answer = ''
    for await (const chunk of socket) answer += chunk
    t.match(answer, /^HTTP\/1\.1 200 /, 'and the connection ends with the answer')
  }
})

t.test('what is answered before there is a route is logged and counted as well', async (t) => {
  const hub = await startTestHub(t)
  const host = 'Host: localhost\r\n'
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
  const cases: [string, Record<string, unknown>][] = [
    ['nonsense\r\n\r\n', { method: null, path: null, status: 400, reason: 'HPE_INVALID_METHOD' }],
    [`GET /?${'y'.repeat(20_000)} HTTP/1.1\r\n${host}\r\n`, { status: 431, reason: 'HPE_HEADER_OVERFLOW' }],
    [`CONNECT example.com:443 HTTP/1.1\r\n${host}\r\n`, { method: 'CONNECT', status: 404 }],
    [`GET /%zz?token=x HTTP/1.1\r\n${host}Connection: close\r\n\r\n`, { path: '/%zz', status: 404 }],
    [
      `GET /${'y'.repeat(300)} HTTP/1.1\r\n${host}Connection: close\r\n\r\n`,
      { path: `/${'y'.repeat(199)}`, status: 404 },
    ],
    [`GET /mqtt HTTP/1.1\r\n${host}${upgrade}\r\n`, { method: 'GET', path: '/mqtt', status: 400 }],
    [
      `GET /mqtt HTTP/1.1\r\n${host}${upgrade}Sec-WebSocket-Protocol: mqtt\r\n\r\n`,
      { path: '/mqtt', status: 400, reason: /Sec-WebSocket-Key/ },
    ],
  ]
  for (const [text, expected] of cases) {
    const answer = await exchange(t, hub, text)
    const [, id] = /^x-request-id: (.+)\r$/im.exec(answer) ?? []
    t.ok(id, answer)
    for (const name of ['x-content-type-options: nosniff', "content-security-policy: default-src 'none'"])
      t.ok(answer.toLowerCase().includes(name), `${text.slice(0, 30)}: ${name}`)
    const [line, ...more] = hub.lines.filter(({ reqId }) => reqId === id)
    t.match(line, { msg: 'request', level: 30, route: null, remoteAddress: '127.0.0.1', ...expected })
    t.same(more, [], 'one line')
  }
  const { counters } = await hub.ask<{ counters: Record<string, number> }>('status')
  t.match(counters, {
    'hub_https_requests_total{route=none,status=400}': 3,
    'hub_https_requests_total{route=none,status=404}': 3,
    'hub_https_requests_total{route=none,status=431}': 1,
  })
})

t.test(
  'who is answered before the body is there is answered at once, and closed if it is long',
  async (t) => {
    const hub = await startTestHub(t)
    const api = await openApi(t, hub)
    const { token } = await addUser(hub, api, own)
    const json = 'Content-Type: application/json\r\n'
    const bearer = `Authorization: Bearer ${token}\r\n`
    const table: [line: string, headers: string, answer: RegExp][] = [
      ['POST /nothing', json, envelope(404)],
      ['POST /nothing', 'Content-Type: text/plain\r\n', envelope(404)],
      ['GET /nothing', '', envelope(404)],
      ['GET /health', '', /^HTTP\/1\.1 200 /],
      ['DELETE /subscriptions/x', bearer, /^HTTP\/1\.1 404 .*Subscription not found/s],
      ['GET /topics', '', envelope(401, 'authorization.missing')],
      [`POST ${events}`, json, envelope(401, 'authorization.missing')],
      [`POST ${events}`, `${json}Authorization: Bearer x\r\n`, envelope(403, 'authorization.invalid')],
      [`POST ${events}`, `${bearer}Content-Type: text/plain\r\n`, envelope(400, 'request.type')],
      [`POST ${events}`, `${bearer}${json}Content-Encoding: gzip\r\n`, envelope(400, 'request.encoding')],
      ['POST /auth/login', 'Content-Type: text/plain\r\n', envelope(400, 'request.type')],
    ]
    for (const [line, headers, answer] of table) {
      for (const length of ['Content-Length: 5000000000', 'Transfer-Encoding: chunked']) {
        const text = `${line} HTTP/1.1\r\nHost: localhost\r\n${headers}${length}\r\n\r\n`
        t.match(await exchange(t, hub, text), answer, `${line}, ${length}`)
      }
    }
  },
)

t.test('a body without end is a 413 after 4 MB, and closed', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
  for (const path of [events, '/subscriptions', '/auth/login']) {
    const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`
    for (const [length, part] of [
      ['Content-Length: 5000000000', 'x'.repeat(65_536)],
      ['Transfer-Encoding: chunked', chunk],
    ] as const) {
      const body = part.repeat(5 * 16)
      const answer = await exchange(t, hub, `${head}${length}\r\n\r\n${body}`)
      t.match(answer, envelope(413, 'payload.size'), `${path}, ${length}`)
    }
  }
})

t.test('TLS 1.1 is refused, connections of one address are bounded', async (t) => {
  const hub = await startTestHub(t, { HUB_MAX_CONNECTIONS_PER_ADDRESS: '2' })
  const options = { host: 'localhost', port: hub.httpsPort, ca: readFileSync(hub.caPath) }
  await t.rejects(secured(connect({ ...options, minVersion: 'TLSv1', maxVersion: 'TLSv1.1' })))
  const first = await secured(connect(options))
  const second = await secured(connect(options))
  await t.rejects(secured(connect(options)), 'the third')
  for (const socket of [first, second]) socket.destroy()
  const { counters } = await hub.ask<{ counters: Record<string, number> }>('status')
  t.equal(counters['hub_connections_refused_total{reason=max-connections-per-address}'], 1)
})

function envelope(status: number, errorCode?: string): RegExp {
  const errors = errorCode === undefined ? '' : `"errors":\\[\\{.*"errorCode":"${errorCode}"\\}\\],`
  return new RegExp(`^HTTP/1\\.1 ${status} .*\\r\\n\\r\\n\\{"message":"[^"]+",${errors}"trace":null\\}$`, 's')
}
