import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { connectPublisher } from '../../clients.ts'
import { codeBlock, readPage } from '../../documentation.ts'
import { institutions, playing, playingTopic, station } from '../../events.ts'
import { listen } from '../../listen.ts'
import { startTestHub, type TestHub } from '../../start-hub.ts'
import { createBrowser, skip } from '../../web/browser.ts'
import { servePage } from '../../web/page-of-others.ts'

const [own = ''] = institutions
const browser = createBrowser(t)
const documented = readPage('subscribers.md')
const library = fileURLToPath(new URL('./dist/mqtt.min.js', import.meta.resolve('mqtt/package.json')))

t.test('the page of the documentation shows what plays', { skip }, async (t) => {
  const { hub, publisher, open } = await startShow(t)
  const { username, password } = await hub.subscriber(playingTopic(station()))
  const page = await open(username, password)
  await page.getByText('<b>Ebbe</b>').waitFor()
  t.equal(await page.locator('#artist').textContent(), 'Mira Hollund')
  t.equal(await page.locator('#state').textContent(), 'live')
  await publisher.publish(playing(station(), { title: 'Flut', artist: null }))
  await page.getByText('Flut').waitFor()
  await hub.close()
  await page.getByText('connection lost').waitFor()
  t.equal(await page.locator('#title').textContent(), 'Flut', 'the last title stays until it is back')
})

t.test('its visitors read why it shows nothing', { skip }, async (t) => {
  const { hub, publisher, open } = await startShow(t)

  t.test('where its credential does not permit the topic', async (t) => {
    const { username, password } = await hub.subscriber('radio/other/#')
    const page = await open(username, password)
    await page.getByText('not permitted').waitFor()
    t.equal(await page.locator('#title').textContent(), '')
    await hub.until(async () => {
      const clients = await hub.ask<{ username: string }[]>('clients.list')
      return clients.every((client) => client.username !== username)
    })
  })

  t.test('where its password is wrong', async () => {
    const { username } = await hub.subscriber(playingTopic(station()))
    const page = await open(username, 'wrong')
    await page.getByText('log-in refused').waitFor()
  })

  t.test('after its credential was revoked, and no title that goes stale', async (t) => {
    const { username, password } = await hub.subscriber(playingTopic(station()))
    const page = await open(username, password)
    await page.getByText('Ebbe').waitFor()
    await hub.ask('credentials.revoke', { username })
    await page.getByText('log-in refused').waitFor()
    t.equal(await page.locator('#title').textContent(), '')
    t.equal(await page.locator('#artist').textContent(), '')
    await publisher.publish(playing(station(), { title: 'Flut' }))
    await page.reload()
    await page.getByText('log-in refused').waitFor()
  })
})

t.test(
  'the element is on the page of the documentation, and looks as its style says',
  { skip },
  async (t) => {
    const { hub, publisher } = await startShow(t)
    const documented = readPage('embed.md')
    const style = `<style>${codeBlock(documented, 'css', 'now-playing')}</style>`
    const html = codeBlock(documented, 'html', '<now-playing').replaceAll(':8443', `:${hub.httpsPort}`)
    const [, policy = ''] = codeBlock(documented, 'http', 'script-src').split('Policy: ')
    const sources = policy.trim().replaceAll(':8443', `:${hub.httpsPort}`)
    const headers = { 'content-security-policy': `default-src 'none'; style-src 'unsafe-inline'; ${sources}` }
    const served = await servePage(t, hub, html.replace('<h1>', `${style}<h1>`), headers)
    const { page, problems } = await browser.open(t, served)
    await page.getByText('<b>Ebbe</b>').waitFor()
    await publisher.publish({
      ...playing(station(), { title: 'Flut', playlistItemId: 'next' }),
      event: 'de.org.hub.v1.radio.track.next',
    })
    await page.getByText('Mira Hollund – Flut').waitFor()
    t.notOk(await page.locator('[part=station]').isVisible())
    const looks = (part: string, pseudo = '') =>
      page.evaluate<[string, string, string]>(
        `(({ color, content, fontSize }) => [color, content, fontSize])(getComputedStyle(
        document.querySelector('now-playing').shadowRoot.querySelector('[part=${part}]'), '${pseudo}'))`,
      )
    t.match(await looks('next', '::before'), ['rgb(102, 102, 119)', '"Gleich: "'])
    t.equal((await looks('title'))[2], '22.4px')
    t.same(problems, [])
  },
)

/** A node with one title on air, and a web server with the files of the documentation. */
async function startShow(t: Test) {
  const hub = await startTestHub(t)
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  await publisher.publish(playing(station(), { title: '<b>Ebbe</b>', artist: 'Mira Hollund' }))
  const files = new Map([
    ['/newest.js', codeBlock(documented, 'js', 'isNews')],
    ['/mqtt.min.js', await readFile(library, 'utf8')],
  ])
  const server = createServer((request, response) => {
    const text = files.get(request.url ?? '')
    const type = request.url?.endsWith('.js') ? 'text/javascript' : 'text/html'
    response.writeHead(text === undefined ? 404 : 200, { 'content-type': type }).end(text)
  })
  const port = await listen(t, server)
  const { page } = await browser.open(t, hub, '/docs/')
  return {
    hub,
    publisher,
    /** Opens the page with a credential. */
    async open(username: string, password: string) {
      files.set('/now.html', filledIn(hub, username, password))
      await page.goto(`http://127.0.0.1:${port}/now.html`)
      return page
    },
  }
}

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
