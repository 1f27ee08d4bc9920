import { createHash, X509Certificate } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium, type Page } from 'playwright-core'
import { connectPublisher, connectSubscriber, type Publisher } from '../client/node.ts'
import { optionsFor } from './client.ts'
import { startCovers } from './covers.ts'
import { type DemoEvent, next, playing, radiotext, trafficAnnouncement } from './events.ts'
import { type DemoNode, startNode } from './node.ts'
import { readAllStations, type Station } from './programme.ts'
import { stationPages } from './station-pages.ts'

/*
 * `npm run screenshots`: makes `docs/images/` from pages of a node with believable events. `CHROMIUM` is the path of
 * the browser.
 */

/** `ready` waits until the page shows what the picture needs. */
interface Picture {
  name: string
  path: string
  /** The page is for operators. */
  mustLogIn?: true
  ready: (page: Page) => Promise<unknown>
}

const pictures: readonly Picture[] = [
  {
    name: 'on-air',
    path: '/',
    ready: (page) => page.locator('.card .title').nth(20).waitFor({ state: 'attached' }),
  },
  {
    name: 'console',
    path: '/console',
    mustLogIn: true,
    ready: (page) => page.getByText('At most').first().waitFor(),
  },
]

/** The page of others, and the livestreams of its light and its dark half, by their places in the sample feed. */
const embed = { name: 'embed', light: [0, 2, 4], dark: [9, 36, 10] }

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium'
const images = fileURLToPath(new URL('../docs/images/', import.meta.url))
const password = 'correct horse battery'
const listeners = 31
const viewport = { width: 1440, height: 900 }

const node = await startNode()
const covers = await startCovers(node)
try {
  const stopListening = await listen(node)
  await broadcast(node)
  await mkdir(images, { recursive: true })
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', await trusting(node)] })
  const page = await browser.newPage({ viewport, colorScheme: 'light', locale: 'en-GB' })
  await page.route('**/operate/trend', (route) => route.fulfill({ json: { result: anHour() } }))
  for (const { name, path, mustLogIn, ready } of pictures) {
    await page.goto(`https://localhost:${node.httpsPort}${path}`)
    if (mustLogIn) await logIn(page, node)
    await ready(page)
    await page.waitForLoadState('networkidle')
    await page.screenshot({ path: join(images, `${name}.png`) })
    process.stdout.write(`docs/images/${name}.png\n`)
  }
  await takeEmbed(await browser.newPage({ viewport: { width: 1100, height: 470 } }))
  await browser.close()
  await stopListening()
} finally {
  covers.close()
  await node.stop()
}

/** Takes the picture of a page of others, which has the element of the hub. */
async function takeEmbed(page: Page): Promise<void> {
  const stations = readAllStations(covers.urlOf)
  const idsOf = (places: readonly number[]) =>
    places.flatMap((place) => stations[place]?.livestreams[0].id ?? [])
  const hub = `https://localhost:${node.httpsPort}`
  // The page counts as one of the Internet, the hub as one of this machine.
  await page.context().grantPermissions(['local-network-access'])
  const body = stationPages(hub, idsOf(embed.light), idsOf(embed.dark))
  await page.route(`${hub}/stations.html`, (route) => route.fulfill({ contentType: 'text/html', body }))
  await page.goto(`${hub}/stations.html`)
  await page.locator('[part=title]').nth(5).waitFor()
  await page.waitForFunction(
    `[...document.querySelectorAll('now-playing')]
      .flatMap((element) => [...element.shadowRoot.querySelectorAll('img')])
      .every((image) => image.complete)`,
  )
  await page.screenshot({ path: join(images, `${embed.name}.png`) })
  process.stdout.write(`docs/images/${embed.name}.png\n`)
}

async function logIn(page: Page, { operator }: DemoNode): Promise<void> {
  const link = await operator('operator@hub.example')
  await page.goto(link)
  await page.getByLabel('New password').fill(password)
  await page.getByRole('button').click()
  await page.getByText('You can log in now').waitFor()
  await page.goto(new URL('/console', link).href)
  await page.getByLabel('E-mail address').fill('operator@hub.example')
  await page.getByLabel('Password').fill(password)
  await page.locator('form').getByRole('button').click()
}

/** Connects clients that subscribe to all events. Returns a function that disconnects them. */
async function listen(node: DemoNode): Promise<() => Promise<void>> {
  const options = {
    ...optionsFor(node, await node.subscriber('picture', 'radio/#'), warn),
    filters: ['radio/#'],
  }
  const clients = Array.from({ length: listeners }, () => connectSubscriber(options))
  return async () => {
    for (const client of clients) await client.close()
  }
}

/** An invented answer to `trend`: the real node has no hour of events yet. */
function anHour() {
  const samples = Array.from({ length: 360 }, (_, index) => {
    const wave = Math.sin(index / 60) + Math.sin(index / 7) / 4 + Math.sin(index * 12.9) / 3
    const published = Math.round(240 + 50 * wave)
    return {
      at: new Date(Date.now() - (360 - index) * 10_000).toISOString(),
      seconds: 10,
      events: { published, blocked: index % 41 === 0 ? 4 : 0, invalid: index % 17 === 0 ? 9 : 1, failed: 0 },
      deliveries: published * listeners,
      connections: listeners - (index % 97 === 0 ? 1 : 0),
      exceeded: 0,
      p50: 3 + wave / 2,
      p99: 24 + 9 * wave + (index === 143 ? 90 : 0),
    }
  })
  return { node: 'hub', everySeconds: 10, samples }
}

/** Publishes events for each livestream of the sample feed. */
async function broadcast(node: DemoNode): Promise<void> {
  const publishers = new Map<string, Publisher>()
  for (const [index, station] of readAllStations(covers.urlOf).entries()) {
    const institution = station.livestreams[0].institution.id
    const publisher =
      publishers.get(institution) ??
      connectPublisher({
        ...optionsFor(node, await node.publisher('picture', institution), warn),
        institution,
      })
    publishers.set(institution, publisher)
    for (const event of programmeOf(station, index)) await publisher.publish(event)
  }
  await Promise.all([...publishers.values()].map((publisher) => publisher.close()))
}

function warn(problem: string): void {
  process.stderr.write(`${problem}\n`)
}

function programmeOf(station: Station, index: number): DemoEvent[] {
  const [now, then = now] = station.playlist
  const start = Date.now() - now.length * 1000 * (((index * 37) % 90) / 100)
  const on = playing(station, now, `now-${index}`, start)
  return [
    ...(index % 12 === 11 ? [] : [on]),
    ...(index % 3 === 2 ? [] : [next(station, then, `next-${index}`, start + now.length * 1000)]),
    ...(index % 4 === 0 ? [radiotext(station, `Heute Abend ab 20 Uhr: ${then.title}`, start)] : []),
    ...(index % 17 === 2 ? [trafficAnnouncement(station, true, Date.now())] : []),
  ]
}

/** A browser option to accept the certificate of this node, and no other. */
async function trusting({ caPath }: DemoNode): Promise<string> {
  const certificate = new X509Certificate(await readFile(join(dirname(caPath), 'server.pem')))
  const key = certificate.publicKey.export({ type: 'spki', format: 'der' })
  return `--ignore-certificate-errors-spki-list=${createHash('sha256').update(key).digest('base64')}`
}
