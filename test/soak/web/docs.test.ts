import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { connectPublisher } from '../../clients.ts'
import { codeBlock, readPage } from '../../documentation.ts'
import { institutions, playing, playingTopic, station } from '../../events.ts'
import { startTestHub, type TestHub } from '../../start-hub.ts'
import { createBrowser, skip } from '../../web/browser.ts'

const [own = ''] = institutions
const browser = createBrowser(t)
const documented = readPage('subscribers.md')
const library = fileURLToPath(new URL('./dist/mqtt.min.js', import.meta.resolve('mqtt/package.json')))

t.test('the page of the documentation shows what plays', { skip }, async (t) => {
  const hub = await startTestHub(t)
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  await publisher.publish(playing(station(), { title: '<b>Ebbe</b>', artist: 'Mira Hollund' }))
  const { username, password } = await hub.subscriber(playingTopic(station()))
  const files = new Map([
    ['/now.html', filledIn(hub, username, password)],
    ['/newest.js', codeBlock(documented, 'js', 'isNews')],
    ['/mqtt.min.js', await readFile(library, 'utf8')],
  ])
  const server = createServer((request, response) => {
    const text = files.get(request.url ?? '')
    const type = request.url?.endsWith('.js') ? 'text/javascript' : 'text/html'
    response.writeHead(text === undefined ? 404 : 200, { 'content-type': type }).end(text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined

  const { page } = await browser.open(t, hub, '/docs/')
  await page.goto(`http://127.0.0.1:${port}/now.html`)
  await page.getByText('<b>Ebbe</b>').waitFor()
  t.equal(await page.locator('#artist').textContent(), 'Mira Hollund')
  t.equal(await page.locator('#state').textContent(), 'live')
  await publisher.publish(playing(station(), { title: 'Flut', artist: null }))
  await page.getByText('Flut').waitFor()
  await hub.close()
  await page.getByText('connection lost').waitFor()
})

/** The HTML page of the documentation, with port and credential filled in. */
function filledIn({ httpsPort }: TestHub, username: string, password: string): string {
  const blanks = [
    ['localhost:8443', `localhost:${httpsPort}`],
    ['sub-website-20260131110000', username],
    ['the password of the credential', password],
  ]
  return blanks.reduce(
    (page, [blank = '', value = '']) => {
      if (!page.includes(blank)) throw new Error(`the page has no ${blank}`)
      return page.replace(blank, value)
    },
    codeBlock(documented, 'html', 'isNews'),
  )
}
