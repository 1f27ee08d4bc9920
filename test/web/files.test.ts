import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t from 'tap'
import { openApi } from '../bridge-https/api.ts'
import { startTestHub, type TestHub } from '../start-hub.ts'

const html = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
/** Limit for the compressed bytes that a page loads before it shows something. */
const mostFirstLoad = 150 * 1024

t.test('a browser gets a page, everybody else JSON as before', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  for (const accept of [
    undefined,
    '*/*',
    'application/json',
    'application/json, text/html',
    'text/html;q=0, */*',
  ]) {
    const { json, headers } = await api.call('GET', '/', { headers: accept === undefined ? {} : { accept } })
    t.match(json, { service: 'now-playing-hub', status: 'ok' }, `accept: ${accept}`)
    t.match(headers.vary, /accept/)
  }
  for (const path of ['/livestreams/x', '/console']) {
    const { status, headers } = await api.call('GET', path)
    t.equal(status, 404)
    t.match(headers, { vary: /\baccept\b/, 'cache-control': 'no-cache' }, 'no cache gives it to a browser')
  }
  for (const path of [
    '/',
    '/livestreams/urn:org:permanent-livestream:4638c4eac849c618',
    '/console',
    '/console/trace/7',
  ]) {
    const page = await api.raw('GET', path, { headers: { accept: html } })
    t.equal(page.status, 200)
    t.match(page.headers['content-type'], /^text\/html; charset=utf-8/i)
    t.match(page.text, /^<!doctype html>/)
  }
})

t.test('the policy of a page lets in what is ours, and covers', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_URL: 'https://hub.example:8443' })
  const page = await (await openApi(t, hub)).raw('GET', '/', { headers: { accept: html } })
  t.strictSame(String(page.headers['content-security-policy']).split('; '), [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' https:",
    "connect-src 'self' wss://hub.example:8443",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ])
  t.match(page.headers, { 'cache-control': 'no-cache', 'referrer-policy': 'no-referrer' })
  t.notMatch(
    page.text,
    /<script(?![^>]* src="\/web\/)|style=|https?:\/\//,
    'nothing inline, nothing from elsewhere',
  )
})

t.test('the first load of a page is small', async (t) => {
  const hub = await startTestHub(t)
  for (const path of ['/', '/console']) {
    const page = await load(hub, path, html)
    const files = [...page.text.matchAll(/(?:src|href)="(\/web\/[^"]+)"/g)].map(([, path = '']) => path)
    t.ok(files.some((path) => path.endsWith('.js')) && files.some((path) => path.endsWith('.css')))
    let bytes = page.bytes
    for (const path of files) {
      const file = await load(hub, path)
      t.match(file.headers, {
        'cache-control': 'public, max-age=31536000, immutable',
        'content-encoding': 'gzip',
      })
      t.match(path, /-[A-Z0-9]{8}\.\w+$/, 'a name for one content')
      bytes += file.bytes
    }
    t.ok(bytes <= mostFirstLoad, `${path}: ${bytes} bytes`)
  }
})

t.test('the script for pages of others is small, and any page may load it', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'false' })
  const path = '/embed/v1.js'
  const plain = await load(hub, path, '*/*', 'identity')
  t.ok(plain.bytes <= 10_000, `${plain.bytes} bytes`)
  const headers = {
    'content-type': 'application/javascript; charset=utf-8',
    'cache-control': 'public, max-age=300',
    'cross-origin-resource-policy': 'cross-origin',
    'access-control-allow-origin': '*',
    vary: 'accept-encoding',
    etag: /^W\/"[\w-]+"$/,
  }
  t.match(plain, { status: 200, headers })
  const compressed = await load(hub, path)
  t.match(compressed, { text: plain.text, headers: { ...headers, 'content-encoding': 'gzip' } })
  const { etag } = plain.headers
  t.equal(compressed.headers.etag, etag)

  const api = await openApi(t, hub)
  const known = await api.call('GET', path, { headers: { 'if-none-match': String(etag) } })
  t.match(known, { status: 304, text: '', headers: { ...headers, etag } })
  const head = await api.raw('HEAD', path)
  t.match(head, {
    status: 200,
    text: '',
    headers: { ...headers, etag, 'content-length': String(plain.bytes) },
  })
  t.equal((await load(hub, '/web/embed-v1.js')).status, 404, 'it has one address')
})

t.test('files are compressed as the browser likes it, and there are no others', async (t) => {
  const hub = await startTestHub(t)
  const { text } = await load(hub, '/', html)
  const [, script = ''] = /src="([^"]+)"/.exec(text) ?? []
  const plain = await load(hub, script, '*/*', 'identity')
  t.equal((await load(hub, script, '*/*', 'br, gzip')).text, plain.text)
  t.equal((await load(hub, script)).text, plain.text)
  t.match((await load(hub, '/web/licenses.txt')).text, /^preact\n\n.*MIT/ms)
  for (const path of ['/web/', '/web/on-air.html', '/web/..%2Fpackage.json', '/web/x-ABCDEFGH.js']) {
    t.equal((await load(hub, path)).status, 404, path)
  }
})

/** Loads a file. `bytes` is its size as transferred, `text` its content after decompression. */
function load(hub: TestHub, path: string, accept = '*/*', encoding = 'gzip') {
  const headers = { accept, 'accept-encoding': encoding }
  const ca = readFileSync(hub.caPath)
  return new Promise<{ status: number; headers: Record<string, unknown>; bytes: number; text: string }>(
    (resolve, reject) => {
      const asked = { host: 'localhost', port: hub.httpsPort, path, ca, headers, agent: false }
      const sent = request(asked, async (response) => {
        const body = Buffer.concat(await response.toArray())
        const text = unpack[String(response.headers['content-encoding'])]?.(body) ?? body
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          bytes: body.length,
          text: text.toString(),
        })
      })
      sent.on('error', reject)
      sent.end()
    },
  )
}

const unpack: Record<string, (body: Buffer) => Buffer> = { gzip: gunzipSync, br: brotliDecompressSync }
