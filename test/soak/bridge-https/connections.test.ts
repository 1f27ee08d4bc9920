import { readFile, writeFile } from 'node:fs/promises'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import t from 'tap'
import { ensureDevelopmentCertificates } from '../../../certs/development.ts'
import { secured } from '../../bridge-https/raw.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'

t.test('a replaced certificate serves new connections of the HTTPS port', async (t) => {
  const hub = await startTestHub(t)
  const fingerprint = async () => {
    const socket = await secured(
      connect({ port: hub.httpsPort, host: '127.0.0.1', rejectUnauthorized: false }),
    )
    const { fingerprint256 } = socket.getPeerCertificate()
    socket.destroy()
    return fingerprint256
  }
  const before = await fingerprint()
  const other = await ensureDevelopmentCertificates(join(hub.home, 'other'))
  await writeFile(join(hub.home, 'certs', 'server-key.pem'), await readFile(other.key))
  await writeFile(join(hub.home, 'certs', 'server.pem'), await readFile(other.cert))
  let after = before
  while (after === before) after = await fingerprint()
  t.not(after, before)
})

t.test('behind a load balancer the limits see the client', async (t) => {
  const hub = await startTestHub(t, { HUB_PROXY_PROTOCOL: 'true', HUB_MAX_CONNECTIONS_PER_ADDRESS: '1' })
  const through = async (header: string) => {
    const socket = connectTcp(hub.httpsPort, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.write(header)
    return secured(connect({ socket, rejectUnauthorized: false }))
  }
  const first = await through('PROXY TCP4 192.0.2.7 192.0.2.1 5000 8443\r\n')
  await t.rejects(through('PROXY TCP4 192.0.2.7 192.0.2.1 5001 8443\r\n'), 'a second one of that address')
  await t.rejects(through('GET / HTTP/1.1\r\n'), 'without a header')
  const other = await through('PROXY TCP4 192.0.2.8 192.0.2.1 5002 8443\r\n')
  other.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  let answer = ''
  for await (const chunk of other) answer += chunk
  t.match(answer, /^HTTP\/1\.1 200 /)
  first.destroy()
})

t.test('a port that is taken keeps the node from starting, and it says so', async (t) => {
  const hub = await startTestHub(t)
  const home = await temporaryDirectory(t)
  await t.rejects(spawnHub(t, home, { HUB_HTTPS_PORT: String(hub.httpsPort) }), {
    message: /ended with 1: the hub cannot start: .*EADDRINUSE.*\n$/,
  })
})
