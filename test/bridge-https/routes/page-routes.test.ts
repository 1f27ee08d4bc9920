import { utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { pageRoutes } from '../../../bridge-https/routes/page-routes.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { openClient } from '../api.ts'
import { startRoutes } from '../start-routes.ts'

const script = '/web/console-ABCDEFGH.js'
/** `npm pack` gives this time to all files. */
const packedAt = new Date('1985-10-26T08:15:00Z')

t.test('a browser gets the page of the next release, although its file looks the same', async (t) => {
  const { send, put } = await start(t)
  await put('console.html', 'release A')
  const page = { accept: 'text/html' }
  const { headers, text } = await send('GET', '/console', { headers: page })
  t.equal(text, 'release A')
  await put('console.html', 'release B')
  const known = {
    ...(headers.etag !== undefined && { 'if-none-match': String(headers.etag) }),
    ...(headers['last-modified'] !== undefined && { 'if-modified-since': String(headers['last-modified']) }),
  }
  t.match(await send('GET', '/console', { headers: { ...page, ...known } }), {
    status: 200,
    text: 'release B',
  })
})

t.test('caches keep a file for a year, in each encoding, and no refusal', async (t) => {
  const { send, put } = await start(t)
  await put(script.replace('/web/', ''), 'text')
  const { status, headers } = await send('GET', script)
  t.equal(status, 200)
  t.equal(headers['cache-control'], 'public, max-age=31536000, immutable')
  t.match(headers.vary, /\baccept-encoding\b/i, 'no cache gives a compressed file to who cannot read it')
  for (const [path, asked] of [
    ['/web/console-HGFEDCBA.js', {}],
    [script, { 'if-match': '"another"' }],
    [script, { 'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' }],
  ] as const) {
    const refused = await send('GET', path, { headers: asked })
    const shown = `${path} ${JSON.stringify(asked)}`
    if (refused.status === 200) t.equal(refused.text, 'text', shown)
    else t.match(refused, { status: 404, headers: { 'cache-control': 'no-cache' } }, shown)
  }
})

t.test('a part of a file that is asked for is the whole file', async (t) => {
  const { send, put } = await start(t)
  await put(script.replace('/web/', ''), 'text')
  for (const range of ['bytes=0-1', 'bytes=-1', 'bytes=99999999-', 'bytes=3-1', 'bytes=0-0,2-2'])
    t.match(await send('GET', script, { headers: { range } }), { status: 200, text: 'text' }, range)
})

async function start(t: Test) {
  const directory = await temporaryDirectory(t)
  const routes = pageRoutes({
    webFiles: { directory: async () => directory },
    publicUrl: () => 'https://hub.example',
  })
  const listener = await startRoutes(t, { routes })
  return {
    send: openClient(t, listener),
    async put(name: string, text: string): Promise<void> {
      const path = join(directory, name)
      await writeFile(path, text)
      await utimes(path, packedAt, packedAt)
    },
  }
}
