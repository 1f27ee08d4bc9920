import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { createTlsWarnings, tlsFailureReason } from '../../listener/tls-failures.ts'
import { startTestHub, type TestHub } from '../start-hub.ts'

function warnings(hub: TestHub): Record<string, unknown>[] {
  return hub.lines.filter(({ msg }) => msg === 'TLS connection failed')
}

async function closed(t: Test, socket: TLSSocket | ReturnType<typeof connectTcp>): Promise<void> {
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  await new Promise((resolve) => socket.once('close', resolve))
}

t.test('connections that fail over TLS leave a warning with address and reason', async (t) => {
  const hub = await startTestHub(t)
  for (const [door, port] of [
    ['MQTT', hub.mqttPort],
    ['HTTPS', hub.httpsPort],
  ] as const) {
    const before = warnings(hub).length
    const reason = async () => {
      await hub.until(async () => warnings(hub).length > before + seen)
      const { remoteAddress, reason, level } = warnings(hub)[before + seen++] ?? {}
      t.match({ remoteAddress, level }, { remoteAddress: '127.0.0.1', level: 40 })
      return reason
    }
    let seen = 0

    const plain = connectTcp(port, '127.0.0.1')
    // A CONNECT in plain text: a client without TLS at the port for TLS.
    plain.write(Buffer.from('100c00044d5154540402003c0000', 'hex'))
    await closed(t, plain)
    t.equal(await reason(), 'plain text instead of TLS', door)

    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
    await closed(t, connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ...old }))
    t.equal(await reason(), 'no common TLS version', door)

    await closed(t, connectTls({ host: '127.0.0.1', port, servername: 'localhost', ca: [] }))
    t.match(await reason(), /does not trust the certificate/, door)
  }
})

t.test('who only looks whether the port is open is no failure', async (t) => {
  const hub = await startTestHub(t)
  const looking = connectTcp(hub.mqttPort, '127.0.0.1')
  await once(looking, 'connect')
  looking.end()
  await closed(t, looking)
  await closed(t, connectTcp(hub.mqttPort, '127.0.0.1').end('x'))
  await hub.until(async () => warnings(hub).length > 0)
  t.equal(warnings(hub).length, 1)
})

t.test('warnings are few, and say how many were left out', async (t) => {
  const lines: unknown[] = []
  let now = 0
  const warn = createTlsWarnings({ warn: (line: unknown) => void lines.push(line) }, () => now)
  for (let round = 0; round < 3; round++) warn('192.0.2.1', 'a')
  warn('192.0.2.1', 'b')
  warn('192.0.2.2', 'a')
  t.same(lines, [
    { remoteAddress: '192.0.2.1', reason: 'a', leftOut: 0 },
    { remoteAddress: '192.0.2.1', reason: 'b', leftOut: 2 },
    { remoteAddress: '192.0.2.2', reason: 'a', leftOut: 0 },
  ])
  for (let host = 0; host < 1000; host++) warn(`2001:db8::${host}`, 'a')
  t.equal(lines.length, 20)
  now = 60_000
  warn('192.0.2.1', 'a')
  t.same(lines.at(-1), { remoteAddress: '192.0.2.1', reason: 'a', leftOut: 983 })
})

t.test('reasons are plain words', async (t) => {
  const table: [code: string, reason: string][] = [
    ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'the client does not trust the certificate'],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN', 'the client does not trust the certificate'],
    ['ERR_SSL_UNSUPPORTED_PROTOCOL', 'no common TLS version'],
    ['ERR_SSL_HTTP_REQUEST', 'plain text instead of TLS'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'plain text instead of TLS'],
    ['ERR_SSL_NO_SHARED_CIPHER', 'no common cipher'],
    ['ERR_TLS_HANDSHAKE_TIMEOUT', 'the handshake took too long'],
    ['ERR_SOMETHING', 'as OpenSSL says it'],
  ]
  for (const [code, reason] of table) {
    t.equal(tlsFailureReason(Object.assign(new Error('as OpenSSL says it'), { code })), reason, code)
  }
})
