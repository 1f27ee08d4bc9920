import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { build } from 'esbuild'
import t from 'tap'
import { connectPublisher } from '../../clients.ts'
import { codeBlock, readPage } from '../../documentation.ts'
import { institutions, playing, station } from '../../events.ts'
import { listen } from '../../listen.ts'
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
  // The documented page, as it stands there but for the port of the hub.
  const script = codeBlock(documented, 'js', 'connectSubscriber')
  const withPort = script.replace('https://localhost:8443', `https://localhost:${hub.httpsPort}`)
  await page.goto(await servePage(t, withPort, codeBlock(documented, 'html', 'page.js')))
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

t.test('the page of docs/clients/browser.md says why it has no names, and gets them', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const { page } = await browser.open(t, hub, '/docs/')
  let asked = 0
  await page.route('**/livestreams', (route) => (++asked === 1 ? route.abort() : route.continue()))
  const script = codeBlock(documented, 'js', 'connectSubscriber')
  const withPort = script.replace('https://localhost:8443', `https://localhost:${hub.httpsPort}`)
  await page.goto(await servePage(t, withPort, codeBlock(documented, 'html', 'page.js')))
  await page
    .locator('#problem')
    .getByText(/^no names: /)
    .waitFor()
  await page.getByText(`${station().title}: no event yet`, { exact: true }).waitFor()
  t.equal(asked, 2)
  await page.locator('#problem:empty').waitFor({ state: 'attached' })
})

t.test('a page publishes over wss, and gets the report of its event', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const { page } = await browser.open(t, hub, '/docs/')
  const options = {
    ...(await hub.publisher([own])),
    url: `wss://localhost:${hub.httpsPort}/mqtt`,
    institution: own,
  }
  const script = `
    import { connectPublisher, EventRefused } from 'now-playing-hub-client'
    const publisher = connectPublisher(${JSON.stringify(options)})
    const { outcome } = await publisher.publish(${JSON.stringify(playing(station()))})
    const refused = await publisher.publish(${JSON.stringify(playing(station(), { length: 0 }))}).catch((error) => error)
    document.querySelector('#shown').textContent =
      [outcome, refused instanceof EventRefused, ...refused.errors.map(({ path }) => path)].join(' ')
    await publisher.close()`
  await page.goto(
    await servePage(t, script, '<p id="shown"></p><script type="module" src="/page.js"></script>'),
  )
  await page.getByText('published true .length', { exact: true }).waitFor()
})

/** Serves a page with a script that imports the library. Resolves with its address. */
async function servePage(
  t: Parameters<typeof temporaryDirectory>[0],
  script: string,
  document: string,
): Promise<string> {
  const home = await temporaryDirectory(t)
  await writeFile(join(home, 'app.js'), script)
  await build({
    absWorkingDir: home,
    entryPoints: ['app.js'],
    outfile: 'page.js',
    bundle: true,
    format: 'esm',
    alias: { 'now-playing-hub-client': projectFile('client/browser.ts') },
  })
  const server = createServer(async ({ url }, response) => {
    const isScript = url === '/page.js'
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    response.end(isScript ? await readFile(join(home, 'page.js')) : document)
  })
  const port = await listen(t, server)
  return `http://127.0.0.1:${port}/`
}
