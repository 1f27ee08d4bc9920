import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { build } from 'esbuild'
import t from 'tap'
import { connectPublisher } from '../../clients.ts'
import { codeBlock, readPage } from '../../documentation.ts'
import { institutions, playing, station } from '../../events.ts'
import { projectFile } from '../../root.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { createBrowser, skip } from '../../web/browser.ts'

const [own = ''] = institutions
const documented = readPage('clients/browser.md')
const browser = createBrowser(t)

t.test('the page of docs/clients/browser.md comes back after a minute offline', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  await publisher.publish(playing(station(), { title: 'Before' }))
  const { page } = await browser.open(t, hub, '/docs/')
  // What a lost network does to a WebSocket: nothing more passes, and nobody says so.
  let isOffline = false
  await page.routeWebSocket('**/mqtt', (line) => {
    if (isOffline) return void line.close()
    const server = line.connectToServer()
    line.onMessage((message) => {
      if (!isOffline) server.send(message)
    })
    server.onMessage((message) => {
      if (!isOffline) line.send(message)
    })
  })
  await page.goto(await servePage(t, hub.httpsPort))
  const shown = `${station().title}: Mira Hollund – `
  await page.getByText(`${shown}Before`, { exact: true }).waitFor()

  isOffline = true
  await page.context().setOffline(true)
  await page.locator('#state').getByText('lost').waitFor()
  await publisher.publish(playing(station(), { title: 'Meanwhile' }))
  await publisher.publish(playing(station(), { title: 'Newest' }))
  // With the half minute until the loss is noticed, that is a minute.
  await page.waitForTimeout(30_000)
  t.equal(await page.locator('#state').textContent(), 'lost')
  isOffline = false
  await page.context().setOffline(false)
  await page.locator('#state').getByText('live').waitFor()
  await page.getByText(`${shown}Newest`, { exact: true }).waitFor()
  t.equal(await page.getByText('Meanwhile').count(), 0)
})

/** Makes the documented page, as it stands there but for the port of the hub. Resolves with its address. */
async function servePage(t: Parameters<typeof temporaryDirectory>[0], httpsPort: number): Promise<string> {
  const home = await temporaryDirectory(t)
  const script = codeBlock(documented, 'js', 'connectSubscriber')
  await writeFile(
    join(home, 'app.js'),
    script.replace('https://localhost:8443', `https://localhost:${httpsPort}`),
  )
  await build({
    ...{ absWorkingDir: home, entryPoints: ['app.js'], outfile: 'page.js', bundle: true, format: 'esm' },
    alias: { 'now-playing-hub-client': projectFile('client/browser.ts') },
  })
  const document = codeBlock(documented, 'html', 'page.js')
  const server = createServer(async ({ url }, response) => {
    const isScript = url === '/page.js'
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    response.end(isScript ? await readFile(join(home, 'page.js')) : document)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
