import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { createAskNode } from '../../admin/other-node.ts'
import { ensureDevelopmentCertificates } from '../../certs/development.ts'
import { listen } from '../listen.ts'
import { startTestHub, temporaryDirectory } from '../start-hub.ts'

t.test('a node of the same hub says that it reaches the store', async (t) => {
  const own = await certificates(t)
  const hub = await startTestHub(t, own.env)
  const url = `https://127.0.0.1:${hub.httpsPort}`
  t.equal(await asker(own)(url), true, 'it has the same certificate')
  t.equal(await asker(own, { caPath: undefined })(url), true, 'also one whose CA is not known')
  const other = await certificates(t)
  t.equal(await asker(other)(url), false, 'a stranger is not believed')
  t.equal(await asker(other, { caPath: own.ca })(url), true, 'a CA that is trusted, and the same name')
  await hub.close()
  t.equal(await asker(own)(url), false, 'it does not answer')
})

t.test('nodes that expect PROXY headers are asked with one', async (t) => {
  const own = await certificates(t)
  const hub = await startTestHub(t, { ...own.env, HUB_PROXY_PROTOCOL: 'true' })
  const url = `https://127.0.0.1:${hub.httpsPort}`
  t.equal(await asker(own, { proxyProtocol: true })(url), true)
  t.equal(await asker(own)(url), false)
})

t.test('who never answers does not reach the store', async (t) => {
  const own = await certificates(t)
  const server = createServer((socket) => void socket.on('error', () => undefined).resume())
  t.equal(await asker(own)(`https://127.0.0.1:${await listen(t, server)}`), false)
})

async function certificates(t: Test) {
  const { ca, cert, key } = await ensureDevelopmentCertificates(await temporaryDirectory(t))
  return { ca, cert, key, env: { HUB_TLS_CERT: cert, HUB_TLS_KEY: key, HUB_TLS_CA: ca } }
}

function asker(
  { ca, cert, key }: { ca: string; cert: string; key: string },
  differing: { caPath?: string | undefined; proxyProtocol?: boolean } = {},
) {
  const pair = { cert: readFileSync(cert), key: readFileSync(key) }
  return createAskNode({
    certificates: { current: () => pair },
    caPath: ca,
    proxyProtocol: false,
    ...differing,
  })
}
